// SPDX-License-Identifier: BSL-1.0
// What a group's workers are fed.
#include "output/streams/group_streams.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

namespace cohort::output {

bool group_streams::feeds(int index) const noexcept {
    return routes_.workers[static_cast<std::size_t>(index)].in.what == input_route::kind::feed;
}

void group_streams::write(int index, std::string text, detail::receiver to) {
    // Shared, because a task must be copyable.
    auto kept = std::make_shared<std::string>(std::move(text));
    loop().post([self = shared_from_this(), index, kept, to = std::move(to)] {
        const auto written = [self, to](std::error_code error) {
            using kind = detail::completion::kind;
            auto done = detail::completion_of(error == std::errc::operation_canceled ? kind::aborted
                                              : error                                ? kind::failed
                                                                                     : kind::done);
            if (error && done.what == kind::failed)
                done.error = std::make_exception_ptr(
                    std::system_error(error, "cohort::group::write: the worker reads no more"));
            self->runtime_.deliver(self->loop(), to, std::move(done));
        };
        self->when_fed(
            index, {to.id,
                    [self, index, kept, id = to.id, written] {
                        if (const auto& feed = self->at(index).feed)
                            feed->write(id, std::move(*kept), written);
                        else
                            written(std::make_error_code(std::errc::broken_pipe));
                    },
                    [written] { written(std::make_error_code(std::errc::operation_canceled)); }});
    });
}

void group_streams::feed(int index, std::string text, stream_writer::listener then) {
    auto kept = std::make_shared<std::string>(std::move(text));
    when_fed(index, {0,
                     [self = shared_from_this(), index, kept, then = std::move(then)] {
                         if (const auto& feed = self->at(index).feed)
                             feed->write(0, std::move(*kept), then);
                         else
                             then(std::make_error_code(std::errc::broken_pipe));
                     },
                     {}});
}

void group_streams::end_feed(int index, base::callback<void()> then) {
    when_fed(index, {0,
                     [self = shared_from_this(), index, then = std::move(then)] {
                         if (const auto& feed = self->at(index).feed)
                             feed->close_after_all();
                         then();
                     },
                     {}});
}

/// Goes on when the worker has started, or will not.
void group_streams::when_fed(int index, early_input later) {
    worker& of = at(index);
    if (of.feed || of.has_ended)
        return later.go_on();
    of.early.push_back(std::move(later));
}

void group_streams::go_on_feeding(int index) {
    for (const auto& each : std::exchange(at(index).early, {}))
        each.go_on();
}

/// @return whether a write() with this id waited for the start of the worker
bool group_streams::cancel_early(worker& of, detail::operation_id id) {
    const auto found = std::ranges::find(of.early, id, &early_input::id);
    if (found == of.early.end())
        return false;
    const auto cancel = std::move(found->cancel);
    of.early.erase(found);
    cancel();
    return true;
}

void group_streams::close_input(int index) {
    loop().post([self = shared_from_this(), index] { self->end_feed(index, [] {}); });
}

}  // namespace cohort::output
