// SPDX-License-Identifier: BSL-1.0
#include "cgroup/worker_cgroup.hpp"

#include "cgroup/cgroup.hpp"

#include <fmt/format.h>

#include <utility>

#include <fcntl.h>

namespace cohort::cgroups {

worker_leaf::worker_leaf(std::shared_ptr<const leaf> parent, std::string name)
    : parent_(std::move(parent)), name_(std::move(name)) {}

std::shared_ptr<const worker_leaf> worker_leaf::make(std::shared_ptr<const leaf> parent, int index,
                                                     sys::unique_fd& directory,
                                                     std::error_code& error) {
    auto name = fmt::format("worker-{}", index);
    // A first attempt may have left this name. Its memory.events must not be blamed on this worker.
    constexpr int most_names = 10'000;
    for (int next = 2;; ++next) {
        error.clear();
        directory = cgroups::make_cgroup_in(parent->directory(), name, error);
        if (!error)
            return std::make_shared<const worker_leaf>(std::move(parent), std::move(name));
        if (error != std::errc::file_exists || next == most_names)
            return nullptr;
        name = fmt::format("worker-{}-{}", index, next);
    }
}

std::optional<cgroups::oom_kill> worker_leaf::find_oom_kill() const noexcept {
    const sys::unique_fd directory(::openat(parent_->directory(), name_.c_str(),
                                            O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    return directory ? cgroups::find_oom_kill(directory.get()) : std::nullopt;
}

}  // namespace cohort::cgroups
