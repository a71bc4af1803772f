// SPDX-License-Identifier: BSL-1.0
#include "output/lines/capture.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace cohort::output {

void capture_buffer::add(std::string_view bytes) {
    total_ += bytes.size();
    const std::size_t first = std::min(bytes.size(), head_limit_ - head_.size());
    head_.append(bytes.substr(0, first));
    add_to_ring(bytes.substr(first));
}

void capture_buffer::add_to_ring(std::string_view bytes) {
    if (bytes.size() >= tail_limit_) {
        ring_.assign(bytes.substr(bytes.size() - tail_limit_));
        oldest_ = 0;
        return;
    }
    const std::size_t grown = std::min(bytes.size(), tail_limit_ - ring_.size());
    ring_.append(bytes.substr(0, grown));
    bytes.remove_prefix(grown);
    const std::size_t to_the_end = std::min(bytes.size(), ring_.size() - oldest_);
    bytes.copy(ring_.data() + oldest_, to_the_end);
    oldest_ += to_the_end;
    if (oldest_ == tail_limit_)
        oldest_ = bytes.substr(to_the_end).copy(ring_.data(), tail_limit_);
}

std::string capture_buffer::tail() const {
    std::string text;
    text.reserve(ring_.size());
    text.append(ring_, oldest_).append(ring_, 0, oldest_);
    return text;
}

std::string capture_buffer::take_tail() noexcept {
    std::ranges::rotate(ring_, ring_.begin() + static_cast<std::ptrdiff_t>(oldest_));
    return std::move(ring_);
}

namespace {

// Only large runs are kept: malloc serves small ones well.
constexpr std::size_t smallest_kept = 16'384;
constexpr std::size_t largest_kept = 131'072;
constexpr std::size_t most_kept = 8;

std::size_t memory_of(const detail::line_run& run) noexcept {
    return run.text.capacity() + run.lines.capacity() * sizeof(detail::line_run::line);
}

}  // namespace

std::shared_ptr<detail::line_run> run_pool::make(std::size_t size) {
    std::unique_ptr<detail::line_run> run;
    if (const std::unique_lock lock(mutex_, std::try_to_lock);
        lock && size >= smallest_kept && !free_.empty()) {
        run = std::move(free_.back());
        free_.pop_back();
    }
    if (!run)
        run = std::make_unique<detail::line_run>();
    return {run.release(), [pool = weak_from_this()](detail::line_run* dropped) {
                std::unique_ptr<detail::line_run> owned(dropped);
                if (const auto found = pool.lock())
                    found->take_back(std::move(owned));
            }};
}

void run_pool::take_back(std::unique_ptr<detail::line_run> run) noexcept {
    if (run->text.capacity() < smallest_kept || memory_of(*run) > largest_kept)
        return;
    run->host.reset();
    run->text.clear();
    run->lines.clear();
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock && free_.size() < most_kept)
        free_.push_back(std::move(run));
}

}  // namespace cohort::output
