// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/line_run.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace cohort::multihost {

/// What one stream of a worker has still to send, over all starts of the worker.
class send_queue {
public:
    /// What goes in one message. Valid until the queue changes.
    struct piece {
        int attempt;
        detail::loss lost;  // before the bytes
        std::string_view bytes;
        bool is_end;  // of the stream of this start
    };

    void add(int attempt, std::string_view bytes);
    /// Counts as dropped, behind what is here.
    void lose(int attempt, std::string_view bytes);
    void end(int attempt);
    /// Drops the oldest bytes: so many as were sent to the queue at once, or more, up to the end of
    /// a line. @return how many
    std::size_t drop_oldest();
    /// Drops the oldest bytes until so many are here, or fewer.
    void drop_to(std::size_t most);

    /// Whether there is nothing to send. A loss waits for what follows it.
    bool empty() const noexcept {
        return parts_.empty() || (parts_.front().is_empty() && !parts_.front().is_end);
    }
    /// Whether nothing is here, not even a loss.
    bool is_clear() const noexcept { return parts_.empty(); }
    /// How many bytes are here.
    std::size_t bytes() const noexcept { return bytes_; }
    /// Of the next piece, if it may be as long as it can.
    std::size_t next_bytes() const noexcept { return parts_.front().rest().size(); }
    /// Whether the start that the next piece is of has ended its stream.
    bool has_ended() const noexcept { return ends_ != 0; }
    /// The queue must not be empty().
    piece next(std::size_t most) const;
    /// The piece of so many bytes was sent.
    void sent(const piece& which);

private:
    struct part {
        int attempt;
        detail::loss lost;  // before its rest
        std::string bytes;
        std::size_t done = 0;  // of the bytes
        bool is_end = false;

        std::string_view rest() const { return std::string_view(bytes).substr(done); }
        bool is_empty() const noexcept { return done == bytes.size(); }
    };

    part& last_of(int attempt, std::size_t size);
    std::size_t drop_from(part& from, std::size_t size);

    std::deque<part> parts_;
    std::size_t bytes_ = 0;
    std::size_t ends_ = 0;
};

}  // namespace cohort::multihost
