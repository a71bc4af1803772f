// SPDX-License-Identifier: BSL-1.0
#include "lines/run_pool.hpp"

#include <cstddef>
#include <new>
#include <utility>

namespace cohort::output {

namespace {

// Only large runs are kept: malloc serves small ones well.
constexpr std::size_t smallest_kept = 16'384;
constexpr std::size_t largest_kept = 262'144;
constexpr std::size_t most_kept = 32;

}  // namespace

std::shared_ptr<detail::line_run> run_pool::make() {
    std::unique_ptr<detail::line_run> run;
    if (const std::unique_lock lock(mutex_, std::try_to_lock); lock && !free_.empty()) {
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
    const auto size = run->text.capacity();
    if (size < smallest_kept || size > largest_kept)
        return;
    run->text.clear();
    run->lines.clear();
    try {
        const std::unique_lock lock(mutex_, std::try_to_lock);
        if (lock && free_.size() < most_kept)
            free_.push_back(std::move(run));
    } catch (const std::bad_alloc&) {
        // It is freed.
    }
}

}  // namespace cohort::output
