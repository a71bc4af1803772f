// SPDX-License-Identifier: BSL-1.0
#include "output/lines/backlog.hpp"

#include <algorithm>

namespace cohort::output {

namespace {

std::uint64_t size_of(const detail::run_part& part) noexcept {
    std::uint64_t size = 0;
    for (std::size_t i = part.first; i < part.first + part.count; ++i)
        size += part.run->lines[i].size;
    return size;
}

}  // namespace

bool backlog::refuses(std::uint64_t bytes) noexcept {
    if (is_closed_ && !error_)
        came_late_ += bytes;
    return takes_no_more();
}

bool backlog::add(const std::shared_ptr<const detail::line_run>& run,
                  cohort::when_full full) noexcept {
    if (refuses(run->text.size()))
        return false;
    queue_.add(run, full);
    added_ += run->text.size();
    latest_ = std::max(latest_, run->time);
    return true;
}

void backlog::leave_out(const detail::line_run& run) noexcept {
    if (refuses(run.text.size()))
        return;
    queue_.leave_out(run);
    added_ += run.text.size();
}

void backlog::lose(int index, int attempt, cohort::stream from, const detail::loss& lost) noexcept {
    if (refuses(lost.bytes))
        return;
    queue_.lose(index, attempt, from, lost);
    added_ += lost.bytes;
}

void backlog::end_stream(int index, int attempt, cohort::stream from, time_point at,
                         std::chrono::system_clock::time_point wall) noexcept {
    if (takes_no_more())
        return;
    queue_.end_stream(index, attempt, from, at, wall);
    queue_.forget_worker(index);
    latest_ = std::max(latest_, at);
}

void backlog::give_up(std::error_code why) noexcept {
    error_ = why;
    queue_.clear();
}

detail::line_batch backlog::begin_batch(std::size_t size) {
    auto batch = queue_.take(size);
    if (batch.empty())
        return batch;
    is_writing_ = true;
    in_batch_ = 0;
    auto oldest = time_point::max();
    for (const auto& part : batch) {
        const auto bytes = size_of(part);
        in_batch_ += bytes;
        // The line that only reports a loss may stand before older lines.
        if (bytes != 0)
            oldest = std::min(oldest, part.run->time);
    }
    taken_ += in_batch_;
    if (oldest != time_point::max())
        reached_ = oldest;
    return batch;
}

bool backlog::is_written(time_point until) const noexcept {
    return error_ || (queue_.empty() && !is_writing_) || reached_ > until;
}

std::uint64_t backlog::waiting() const noexcept {
    const auto gone = taken_ + queue_.lost_bytes();
    return added_ > gone ? added_ - gone : 0;
}

}  // namespace cohort::output
