// SPDX-License-Identifier: BSL-1.0
#include "group/supervisor/printed_end.hpp"

#include "base/values/group_end.hpp"

#include <cohort/detail/duration.hpp>

#include <utility>

namespace cohort::groups {

namespace {

/// How much longer than flush_timeout the end of a worker's streams may take. The output thread has
/// bounds of its own, which are shorter; this one is for an output thread that does not answer.
constexpr std::chrono::nanoseconds longest_reading = std::chrono::seconds(1);
/// How often a thread that goes on, but does not come to these streams, gets more time.
constexpr int most_extensions = 100;

}  // namespace

printed_end::printed_end(loop::engine& loop, std::shared_ptr<output::group_streams> streams,
                         int index, std::chrono::steady_clock::duration flush_timeout)
    : loop_(loop), streams_(std::move(streams)), index_(index), flush_timeout_(flush_timeout) {}

void printed_end::begin() {
    if (streams_->routes().has_pipes)
        limit(2);
    streams_->worker_ended(
        index_,
        [self = shared_from_this()](output::stream_end read) {
            if (!self->has_ended_)
                self->read_ = std::move(read);
        },
        [self = shared_from_this()](const std::string& note) {
            self->is_over_ = true;
            self->streams_ended(note);
            self->deliver();
        });
}

/// Counted in steps, because a program that was stopped for a while sees that while pass at once,
/// and its output thread must have a step's time after that. A thread that goes on is only slow.
void printed_end::limit(int steps) {
    const auto step = longest_reading / 2 + flush_timeout_ / 2;
    limit_ = loop_.timer().at(
        detail::saturating_add(std::chrono::steady_clock::now(), step),
        [self = shared_from_this(), steps, turns = streams_->loop().turns()] {
            self->limit_.reset();
            if (self->streams_->loop().turns() != turns && self->extensions_++ < most_extensions)
                return self->limit(2);
            if (steps > 1)
                return self->limit(steps - 1);
            self->streams_ended(self->read_ ? "what it printed was not written in time"
                                            : "what it printed was not read in time");
        });
}

/// @param note  counts only the first time
void printed_end::streams_ended(const std::string& note) {
    if (limit_)
        loop_.timer().cancel(*std::exchange(limit_, std::nullopt));
    if (std::exchange(has_ended_, true))
        return;
    if (!read_)
        read_.emplace();
    detail::add_note(read_->note, note);
    deliver();
}

void printed_end::await(base::callback<void(output::stream_end)> then,
                        base::callback<void()> over) {
    then_ = std::move(then);
    over_ = std::move(over);
    deliver();
}

void printed_end::deliver() {
    if (is_over_ && over_)
        std::exchange(over_, {})();
    if (has_ended_ && then_)
        std::exchange(then_, {})(std::move(*read_));
}

}  // namespace cohort::groups
