// SPDX-License-Identifier: BSL-1.0
#include "start/exec/detached.hpp"

#include "start/exec/child.hpp"
#include "start/exec/clone.hpp"
#include "start/exec/start_limit.hpp"

#include <cerrno>
#include <system_error>

namespace cohort::start {
namespace {

/// The task of the intermediate process, which shares this process' memory.
struct middle_task {
    child_task child;
    clone_entry entry;
    descriptor_table table;
    const child_stack* stack;
    long pid = 0;             // the result of the program's clone
    memory_user program = 0;  // the program's process
};

COHORT_BEFORE_EXEC int run_middle(void* argument) noexcept {
    auto& task = *static_cast<middle_task*>(argument);
    task.pid = clone_and_wait(task.entry, task.table, *task.stack, run_child, &task.child,
                              {nullptr, &task.program});
    leave();
}

}  // namespace

std::error_code start_detached(protocol::order_block& order, start_tier tier,
                               std::chrono::milliseconds longest, base::unique_fd& intermediate) {
    const auto failure = [](int error) { return std::error_code(error, std::system_category()); };
    const child_stack outer;
    const child_stack inner;
    if (!outer || !inner)
        return failure(ENOMEM);
    order.rebase();
    const auto table = tier.close_range ? descriptor_table::shared : descriptor_table::copied;
    const auto entry = tier.clone3 ? clone_entry::clone3 : clone_entry::legacy;
    middle_task task{child_task(*order), entry, table, &inner};
    task.child.shared_table = tier.close_range;

    int pidfd = -1;
    memory_user middle = 0;
    start_limit limit(middle, longest);
    if (limit.error())
        return limit.error();
    if (const long pid = clone_and_wait(entry, table, outer, run_middle, &task, {&pidfd, &middle});
        pid < 0)
        return failure(static_cast<int>(-pid));
    intermediate.reset(pidfd);
    // If the intermediate process was killed, the program's may still run in this memory.
    end_user(task.program);
    if (limit.end())
        return failure(ETIMEDOUT);
    if (task.pid <= 0)
        return failure(task.pid < 0 ? static_cast<int>(-task.pid) : EINTR);
    if (task.child.error != 0 || task.child.at != stage::exec)
        return failure(task.child.error != 0 ? task.child.error : EINTR);
    return {};
}

}  // namespace cohort::start
