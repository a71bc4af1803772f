// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/line_run.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace cohort::output {

/// Makes runs, and uses the memory of large ones again once nobody has them any more. Without that
/// a flood of text spends half of its time on memory that goes back to the system and comes again.
/// Runs may be dropped on any thread, also after the pool.
class run_pool : public std::enable_shared_from_this<run_pool> {
public:
    /// An empty run. Only one for much text has memory that was used before: a short run would hold
    /// much of it, for a few lines that wait to be read.
    /// @param size  how many bytes of text it will hold
    std::shared_ptr<detail::line_run> make(std::size_t size);

private:
    void take_back(std::unique_ptr<detail::line_run> run) noexcept;

    // Only tried, because a forked copy may inherit it locked.
    std::mutex mutex_;
    std::vector<std::unique_ptr<detail::line_run>> free_;
};

}  // namespace cohort::output
