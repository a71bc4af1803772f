// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "loop/engine/engine.hpp"
#include "output/pipes/stream_reader.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace cohort::output {

/// One stream of one worker on another machine, from its first start to its last end. It is handed
/// the stream's parts, gives them to the sink of their start while that has room, keeps the rest,
/// and tells what it keeps no more, so that more may be sent. Belongs to the loop's thread.
class far_reader final : public stream_reader, public std::enable_shared_from_this<far_reader> {
public:
    /// What comes at once.
    struct part {
        int attempt = 0;               // of the worker's start
        std::uint64_t lost_lines = 0;  // before the bytes
        std::uint64_t lost_bytes = 0;
        std::string_view bytes;
        bool ends = false;  // the stream of this start
    };
    using make_sink = base::callback<std::shared_ptr<byte_sink>(int attempt)>;
    using consumed = base::callback<void(std::uint64_t cost)>;

    /// @param done  gets what the sender has paid for parts that are not kept any more
    far_reader(loop::engine& loop, consumed done) : loop_(loop), done_(std::move(done)) {}
    /// @param make  makes the sink of a start, which is not kept after its end. Before the first
    ///              part comes. Null if the group is gone
    void set_sinks(make_sink make) { make_ = std::move(make); }

    /// Takes the next part. After an end the next one is of a later start.
    void take(const part& next, std::uint64_t cost);

    void begin() override {}
    bool go_on() override;
    /// Takes all that is kept. Parts that come after this call are dropped.
    void worker_ended(loop::task then) override;
    void look() override {}

private:
    struct kept {
        int attempt;
        std::uint64_t lost_lines;
        std::uint64_t lost_bytes;
        std::string bytes;
        bool ends;
        std::uint64_t cost;

        part view() const { return {attempt, lost_lines, lost_bytes, bytes, ends}; }
    };

    bool has_room(int attempt);
    void give(const part& next);
    void give_first();
    void keep(const part& next, std::uint64_t cost);
    void turn_later();
    void turn();
    void end();

    loop::engine& loop_;
    make_sink make_;
    consumed done_;
    std::shared_ptr<byte_sink> sink_;  // of the present start; null: no part of it was given
    std::deque<kept> kept_;
    loop::task ended_;
    unsigned lossy_starts_ = 0;
    int last_lossy_ = -1;       // start
    bool waits_ = false;        // for room: the sink calls
    bool is_due_ = false;       // a turn is posted
    bool leaves_room_ = false;  // others wait for its turn
    bool ends_ = false;         // worker_ended() was called
    bool is_over_ = false;
};

}  // namespace cohort::output
