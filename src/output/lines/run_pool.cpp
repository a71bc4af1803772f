// SPDX-License-Identifier: BSL-1.0
#include "output/lines/run_pool.hpp"

#include <cstddef>
#include <utility>

namespace cohort::output {

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
