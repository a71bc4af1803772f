// SPDX-License-Identifier: BSL-1.0
#include "output/streams/line_hub.hpp"

#include "base/sys/patiently.hpp"

#include <new>
#include <utility>

namespace cohort::output {

namespace {

/// What one call of output_batch() gets at most, in bytes of text.
constexpr std::size_t most_at_once = std::size_t{256} << 10;

}  // namespace

line_hub::line_hub(loop::runtime& runtime, std::size_t bound, std::size_t while_read, int streams)
    : runtime_(runtime), queue_(bound, while_read), waiters_(runtime, runtime.output()),
      open_streams_(streams) {}

void line_hub::add(std::shared_ptr<const detail::line_run> run, when_full full) {
    if (is_forgotten_)
        return report_room();
    queue_.add(std::move(run), full);
    deliver();
}

std::uint64_t line_hub::end_stream(int index, stream from) {
    try {
        if (!is_forgotten_)
            queue_.end_stream(index, 0, from, runtime_.output().now());
    } catch (const std::bad_alloc&) {
        // The loss is not reported to the calls.
    }
    const auto lost = queue_.lost_bytes(index, from);
    --open_streams_;
    deliver();
    return lost;
}

void line_hub::await(detail::receiver to, detail::amount wanted,
                     std::optional<detail::time_point> until) {
    waiters_.add(std::move(to), until, wanted);
    deliver();
}

detail::line_batch line_hub::take(detail::amount wanted) {
    if (returned_.empty())
        return wanted == detail::amount::one ? queue_.take_line() : queue_.take(most_at_once);
    if (wanted == detail::amount::all)
        return std::exchange(returned_, {});
    detail::run_part& first = returned_.front();
    auto line = base::patiently([&] { return detail::line_batch{first}; });
    line.front().count = 1;
    first.offset += first.run->lines[first.first].size;
    first.lost = {};
    ++first.first;
    if (--first.count == 0)
        returned_.erase(returned_.begin());
    return line;
}

/// Lines whose reader is gone are kept, because each line is delivered once to somebody who lives.
void line_hub::deliver() {
    while (waiters_.has_one() && has_lines()) {
        auto batch = base::make_shared_patiently<detail::line_batch>();
        *batch = take(waiters_.wanted_by_first());
        detail::completion done;
        done.lines = batch;
        if (!waiters_.complete_only_first(done))
            base::patiently(
                [&] { returned_.insert(returned_.begin(), batch->begin(), batch->end()); });
    }
    if (is_over())
        waiters_.complete_all(detail::completion());
    report_room();
}

void line_hub::report_room() {
    while (!waiting_streams_.empty() && has_room()) {
        const auto then = std::move(waiting_streams_.front());
        waiting_streams_.pop_front();
        if (then())
            return;  // the next is called when this one has read
    }
}

void line_hub::end() {
    open_streams_ = 0;
    deliver();
}

void line_hub::forget() {
    is_forgotten_ = true;
    queue_.clear();
    returned_.clear();
    open_streams_ = 0;
    deliver();
}

}  // namespace cohort::output
