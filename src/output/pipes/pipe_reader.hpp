// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/unique_fd.hpp"
#include "loop/engine/engine.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string_view>
#include <system_error>

namespace cohort::output {

/// Takes what is read from a pipe. Called on the loop's thread.
class byte_sink {
public:
    virtual ~byte_sink() = default;
    virtual void take(std::string_view bytes) = 0;
    /// Whether more may be read now. If not, the sink calls pipe_reader::go_on() later.
    virtual bool has_room() = 0;
    /// A turn of this stream is over: what room there is now is for the next stream that waits.
    virtual void leave_room() = 0;
    /// Nothing more comes. Called once. @param why  an error of the last read, or none
    virtual void end(std::error_code why) = 0;
};

/// Reads one stream of one worker: at most 64 KiB a turn, so that every stream and every other
/// event of the loop gets its turn. The stream ends with its worker, or at its EOF if that comes
/// first. Output of grandchildren is then read and discarded, now and then, until nobody holds the
/// pipe any more, so that nobody is killed by SIGPIPE. Belongs to the loop's thread.
///
/// All calls on the pipe are made by engine::call(), also close(2): each takes the pipe's lock in
/// the kernel, which a worker can hold for as long as it likes.
class pipe_reader : public std::enable_shared_from_this<pipe_reader> {
public:
    static constexpr std::size_t most_a_turn = 65'536;

    pipe_reader(loop::engine& loop, base::unique_fd fd, std::shared_ptr<byte_sink> sink,
                std::shared_ptr<std::atomic<int>> lingering);
    ~pipe_reader();

    /// Begins to read.
    void begin() { watch(); }
    /// Reads on after the sink had no room. @return whether it does; else the room is for others
    bool go_on();
    /// The worker has ended: takes the bytes that are in the pipe now, even over the sink's room,
    /// then ends the stream and calls `then`.
    void worker_ended(loop::task then);
    /// To be called now and then while the stream ends. If one call on the pipe has lasted since
    /// the look before, ends the stream although not all of it has been read, with the error
    /// `timed_out`. A call that has yet to begin, because others hang, does not count.
    void look();

private:
    enum class state { reads, waits_for_room, ends, lingers, closed };
    struct pipe;

    void watch();
    void watch_in(std::chrono::milliseconds time);
    void turn();
    void read();
    void read_rest();
    void turn_over(int got);
    void rest_came(int got);
    void give_to_sink(int got);
    void end_stream(std::error_code why = {});
    void linger();
    void close();

    loop::engine& loop_;
    std::shared_ptr<pipe> pipe_;
    std::shared_ptr<byte_sink> sink_;  // null once the stream has ended
    std::shared_ptr<std::atomic<int>>
        lingering_;  // how many pipes of the group are read into nothing
    state state_ = state::reads;
    bool is_watched_ = false;
    bool is_called_ = false;  // a call on the pipe is not over
    unsigned asked_ = 0;      // calls
    unsigned seen_ = 0;       // of them, how many had begun at the last look() at one that lasted
    loop::task ended_;        // from worker_ended()
};

}  // namespace cohort::output
