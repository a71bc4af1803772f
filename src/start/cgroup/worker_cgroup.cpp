// SPDX-License-Identifier: BSL-1.0
#include "start/cgroup/worker_cgroup.hpp"

#include "start/cgroup/cgroup.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <exception>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace cohort::start {

namespace {

/// How many cgroups of earlier workers one removal removes as well. More than one, so that they
/// become fewer; not all, because other groups wait for the thread.
constexpr int most_removed_later = 8;

/// Removes a cgroup. @return false: a process is left in it
bool remove_cgroup_if_empty(int parent, const std::string& name) noexcept {
    return ::unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0 ||
           (errno != EBUSY && errno != ENOTEMPTY);
}

}  // namespace

worker_cgroup::worker_cgroup(std::shared_ptr<group_cgroup> parent, std::string name)
    : parent_(std::move(parent)), name_(std::move(name)) {}

std::shared_ptr<const worker_cgroup> worker_cgroup::make(std::shared_ptr<group_cgroup> parent,
                                                         int index, base::unique_fd& directory,
                                                         std::error_code& error) {
    auto name = fmt::format("worker-{}", index);
    // A first attempt may have left this name. Its memory.events must not be blamed on this worker.
    constexpr int most_names = 10'000;
    for (int next = 2;; ++next) {
        error.clear();
        directory = start::make_cgroup_in(parent->directory(), name, error);
        if (!error)
            return std::make_shared<const worker_cgroup>(std::move(parent), std::move(name));
        if (error != std::errc::file_exists || next == most_names)
            return nullptr;
        name = fmt::format("worker-{}-{}", index, next);
    }
}

void worker_cgroup::remove_if_empty() const noexcept {
    auto& busy = parent_->busy();
    for (int removed = 0; removed < most_removed_later; ++removed) {
        auto earlier = busy.take_first();
        if (!earlier)
            break;
        if (!remove_cgroup_if_empty(parent_->directory(), *earlier)) {
            busy.add(std::move(*earlier));  // the others come first the next time
            break;
        }
    }
    if (!remove_cgroup_if_empty(parent_->directory(), name_))
        busy.add(name_);
}

bool worker_cgroup::end() const noexcept {
    try {
        if (remove_cgroup_if_empty(parent_->directory(), name_))
            return true;
        const auto directory = open();
        if (directory && start::remove_cgroup(directory.get(), name_))
            (void)!!start::kill_cgroup(directory.get());
    } catch (const std::exception&) {  // no memory
    }
    return false;
}

base::unique_fd worker_cgroup::open() const noexcept {
    return base::unique_fd(::openat(parent_->directory(), name_.c_str(),
                                    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

std::optional<start::oom_kill> worker_cgroup::find_oom_kill() const noexcept {
    const auto directory = open();
    return directory ? start::find_oom_kill(directory.get()) : std::nullopt;
}

}  // namespace cohort::start
