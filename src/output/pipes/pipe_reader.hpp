// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"
#include "loop/engine/engine.hpp"
#include "output/pipes/pipe.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <system_error>

namespace cohort::output {

/// Reads one stream of one worker: at most 64 KiB a turn, so that every stream and every other
/// event of the loop gets its turn. The stream ends with its worker, or at its EOF if that comes
/// first. Output of grandchildren is then read and discarded, now and then, until nobody holds the
/// pipe any more, so that nobody is killed by SIGPIPE. Belongs to the loop's thread.
///
/// All calls on the pipe are made by engine::call(), also close(2): each takes the pipe's lock in
/// the kernel, which a worker can hold for as long as it likes.
class pipe_reader final : public stream_reader, public std::enable_shared_from_this<pipe_reader> {
public:
    static constexpr std::size_t most_a_turn = 65'536;

    pipe_reader(loop::engine& loop, base::unique_fd fd, std::shared_ptr<byte_sink> sink,
                std::shared_ptr<std::atomic<int>> lingering);
    ~pipe_reader() override;

    void begin() override { watch(); }
    bool go_on() override;
    /// Takes the bytes that are in the pipe now.
    void worker_ended(loop::task then) override;
    /// If one call on the pipe has lasted since the look before, ends the stream although not all
    /// of it has been read, with the error `timed_out`. A call that has yet to begin, because
    /// others hang, does not count.
    void look() override;

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
