// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "loop/engine/engine.hpp"
#include "output/pipes/pipe.hpp"

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

/// Feeds a worker on another machine. Texts go there in pieces, each of which is answered when the
/// worker has taken it; a text is over with the answer to its last piece. Where the worker has
/// closed its input, the other machine refuses pieces, because only it knows whether the worker has
/// started again since. Belongs to the loop's thread.
class far_writer final : public stream_writer {
public:
    /// Sends a piece of a text, or with no text the end of the input.
    using sender = base::callback<void(std::string_view text, bool is_end)>;
    /// What a piece costs besides its bytes.
    static constexpr std::size_t piece_cost = 128;
    /// What the pieces that are not answered may cost together.
    static constexpr std::size_t window = 65'536;

    explicit far_writer(sender send) : send_(std::move(send)) {}

    void write(std::uint64_t id, std::string text, listener then) override;
    bool cancel(std::uint64_t id) override;
    void close_after_all() override;
    void end() override;

    /// The answer to the oldest piece that has none.
    /// @param is_taken  false: it was refused, with the text that it belongs to
    /// @return false: all are answered
    bool answered(bool is_taken);

private:
    struct text {
        std::uint64_t id;
        std::uint64_t number;  // of this writer
        std::string bytes;
        bool is_end;  // of the input, instead of a text
        listener then;
        std::size_t sent = 0;
        bool is_sent = false;     // whole
        unsigned unanswered = 0;  // pieces
    };
    struct piece {
        std::uint64_t text;
        std::size_t cost;
    };

    void go_on();
    bool send_piece(text& of);
    void remove(std::uint64_t number, std::error_code why);

    sender send_;
    std::deque<text> texts_;
    std::deque<piece> pieces_;           // that are not answered
    std::size_t under_way_ = 0;          // what these cost
    std::uint64_t last_number_ = 0;
    bool has_ended_ = false;
};

}  // namespace cohort::output
