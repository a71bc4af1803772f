// SPDX-License-Identifier: BSL-1.0
#include "hosts/connection/send_queue.hpp"

#include <algorithm>
#include <utility>

namespace cohort::multihost {

namespace {

/// Bytes that follow each other are kept together, up to so many.
constexpr std::size_t most_joined = 65'536;

void note_dropped(detail::loss& before, std::string_view dropped) {
    before.bytes += dropped.size();
    before.lines += static_cast<std::uint64_t>(std::ranges::count(dropped, '\n'));
}

}  // namespace

/// The last part, if it is of this start and has room for so many bytes; else a new one.
send_queue::part& send_queue::last_of(int attempt, std::size_t size) {
    if (!parts_.empty()) {
        part& last = parts_.back();
        const bool has_room = last.is_empty() || last.bytes.size() + size <= most_joined;
        if (last.attempt == attempt && !last.is_end && has_room)
            return last;
    }
    return parts_.emplace_back(part{attempt, {}, {}});
}

void send_queue::add(int attempt, std::string_view bytes) {
    part& to = last_of(attempt, bytes.size());
    to.bytes += bytes;
    bytes_ += bytes.size();
}

void send_queue::lose(int attempt, std::string_view bytes) {
    part* to = &last_of(attempt, 0);
    if (!to->is_empty())
        to = &parts_.emplace_back(part{attempt, {}, {}});
    note_dropped(to->lost, bytes);
}

void send_queue::end(int attempt) {
    last_of(attempt, 0).is_end = true;
    ++ends_;
}

/// Drops the first bytes of a part's rest.
std::size_t send_queue::drop_from(part& from, std::size_t size) {
    note_dropped(from.lost, from.rest().substr(0, size));
    from.done += size;
    bytes_ -= size;
    if (from.is_empty()) {
        from.bytes = {};
        from.done = 0;
    }
    return size;
}

std::size_t send_queue::drop_oldest() {
    auto found = std::ranges::find_if(parts_, [](const part& each) { return !each.is_empty(); });
    if (found == parts_.end())
        return 0;
    const bool ends_line = found->bytes.back() == '\n';
    auto dropped = drop_from(*found, found->rest().size());
    if (const auto next = std::next(found); !ends_line && !found->is_end && next != parts_.end())
        if (const auto newline = next->rest().find('\n'); newline != std::string_view::npos)
            dropped += drop_from(*next, newline + 1);
    // A loss stands before what follows it.
    while (found->is_empty() && !found->is_end && std::next(found) != parts_.end()) {
        const auto lost = found->lost;
        found = parts_.erase(found);
        found->lost.lines += lost.lines;
        found->lost.bytes += lost.bytes;
    }
    return dropped;
}

void send_queue::drop_to(std::size_t most) {
    while (bytes_ > most && drop_oldest() != 0) {
    }
}

send_queue::piece send_queue::next(std::size_t most) const {
    const part& first = parts_.front();
    const auto bytes = first.rest().substr(0, most);
    return {first.attempt, first.lost, bytes, first.is_end && bytes.size() == first.rest().size()};
}

void send_queue::sent(const piece& which) {
    part& first = parts_.front();
    first.lost = {};
    first.done += which.bytes.size();
    bytes_ -= which.bytes.size();
    if (which.is_end)
        --ends_;
    if (first.is_empty() && (which.is_end || !first.is_end))
        parts_.pop_front();
}

}  // namespace cohort::multihost
