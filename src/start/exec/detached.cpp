// SPDX-License-Identifier: BSL-1.0
#include "start/exec/detached.hpp"

#include "start/exec/child.hpp"
#include "start/exec/clone.hpp"

#include <atomic>
#include <cerrno>
#include <system_error>

#include <unistd.h>

namespace cohort::start {
namespace {

/// The task of the intermediate process, which shares this process' memory.
struct middle_task {
    child_task child;
    clone_entry entry;
    descriptor_table table;
    const child_stack* stack;
    int pidfd;
    long pid;
};

COHORT_BEFORE_EXEC int run_middle(void* argument) noexcept {
    auto& task = *static_cast<middle_task*>(argument);
    task.pid =
        clone_and_wait(task.entry, task.table, *task.stack, run_child, &task.child, task.pidfd);
    leave();
}

}  // namespace

std::error_code start_detached(protocol::order_block& order, start_tier tier,
                               base::unique_fd& intermediate) {
    const auto failure = [](int error) { return std::error_code(error, std::system_category()); };
    const child_stack outer;
    const child_stack inner;
    if (!outer || !inner)
        return failure(ENOMEM);
    order.rebase();
    const auto table = tier.close_range ? descriptor_table::shared : descriptor_table::copied;
    const auto entry = tier.clone3 ? clone_entry::clone3 : clone_entry::legacy;
    middle_task task{child_task(*order), entry, table, &inner, -1, 0};
    std::atomic<int> nobody_looks = -1;
    task.child.shared_table = tier.close_range;
    task.child.pidfd = &task.pidfd;
    task.child.pidfd_slot = reinterpret_cast<int*>(&nobody_looks);

    int pidfd = -1;
    if (const long pid = clone_and_wait(entry, table, outer, run_middle, &task, pidfd); pid < 0)
        return failure(static_cast<int>(-pid));
    intermediate.reset(pidfd);
    if (task.pid <= 0)
        return failure(task.pid < 0 ? static_cast<int>(-task.pid) : EINTR);
    if (tier.close_range)
        ::close(task.pidfd);  // the kernel has put it into this process' table
    if (task.child.error != 0 || task.child.at != stage::exec)
        return failure(task.child.error != 0 ? task.child.error : EINTR);
    return {};
}

}  // namespace cohort::start
