// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "output/pipes/stream_writer.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace cohort::output {

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
