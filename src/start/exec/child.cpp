// SPDX-License-Identifier: BSL-1.0
#include "start/exec/child.hpp"

#include "base/sys/raw_call.hpp"
#include "start/exec/child_table.hpp"
#include "start/exec/itself.hpp"

#include <cerrno>
#include <csignal>
#include <cstdint>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

// All of this runs in the starter's memory, on a stack of 64 KB, while other threads of the host
// run on: system calls only, nothing that locks, allocates or uses the C library's state.
namespace cohort::start {
namespace {

constexpr std::size_t kernel_sigset_size = 8;

/// Gives every signal its default action, because exec and CLONE_CLEAR_SIGHAND reset handlers but
/// keep SIG_IGN. Uses the raw call, because glibc's hides its own two signals, whose handlers must
/// not run in here either.
COHORT_BEFORE_EXEC void set_default_dispositions() noexcept {
    struct {  // the kernel's struct sigaction: handler, flags, (restorer,) mask; all zero is
              // SIG_DFL
        void* words[8] = {};
    } const by_default;
    constexpr int last_signal = 64;
    for (int signo = 1; signo <= last_signal; ++signo)
        if (signo != SIGKILL && signo != SIGSTOP)
            base::raw_call(SYS_rt_sigaction, signo, base::address(&by_default), 0,
                           kernel_sigset_size);
}

COHORT_BEFORE_EXEC void arm_parent_death(child_task& task) noexcept {
    task.at = stage::parent_death;
    if (task.order->parent_death_signal == 0)
        return;
    const long result =
        base::raw_call(SYS_prctl, PR_SET_PDEATHSIG, task.order->parent_death_signal);
    if (result < 0)
        fail(task, result);
    // If the parent died before the call above, the signal never comes.
    if (base::raw_call(SYS_getppid) != task.order->parent)
        fail(task, -ESRCH);
}

COHORT_BEFORE_EXEC void lead_group(child_task& task) noexcept {
    task.at = stage::process_group;
    long result = 0;
    if (task.order->own_session != 0)
        result = base::raw_call(SYS_setsid);
    else if (task.order->own_process_group != 0)
        result = base::raw_call(SYS_setpgid, 0, 0);
    else if (task.order->process_group != 0)
        base::raw_call(SYS_setpgid, 0, task.order->process_group);  // the group may be gone
    if (result < 0)
        fail(task, result);
}

COHORT_BEFORE_EXEC void enter_cgroup(child_task& task) noexcept {
    task.at = stage::cgroup;
    if (!task.enters_cgroup)
        return;
    long result = task.cgroup_procs;
    const char self = '0';  // 0 means the process that writes
    if (result >= 0)
        result = base::raw_call(SYS_write, task.cgroup_procs, base::address(&self), 1);
    if (result < 0 && task.order->cgroup_is_needed != 0)
        fail(task, result);
}

/// Tells the guardian about the child. The child does it itself, so that its program never runs
/// unknown to the guardian. If it has no pidfd of itself it opens one for this call.
COHORT_BEFORE_EXEC void announce(child_task& task) noexcept {
    protocol::guard_order guard = task.order->guarded_by();
    if (guard.connection < 0)
        return;
    const bool has_own = task.shared_table && task.pidfd != nullptr;
    const long self = base::raw_call(SYS_getpid);
    const long pidfd = has_own ? *task.pidfd : base::raw_call(SYS_pidfd_open, self, 0);
    protocol::add_numbers(guard.message, self);
    task.is_unguarded = pidfd < 0 || !protocol::notify_guardian(guard, static_cast<int>(pidfd));
    if (!has_own && pidfd >= 0)
        base::raw_call(SYS_close, pidfd);
}

COHORT_BEFORE_EXEC void change_directory(child_task& task) noexcept {
    task.at = stage::chdir;
    long result = 0;
    if (task.directory >= 0)
        result = base::raw_call(SYS_fchdir, task.directory);
    const char* const wanted = task.order->text(task.order->working_directory);
    if (result == 0 && wanted != nullptr)
        result = base::raw_call(SYS_chdir, base::address(wanted));
    if (result < 0)
        fail(task, result);
}

/// A failure to run on the caller's CPUs is ignored: a cpuset may have shrunk, and the worker runs
/// on the CPUs it has.
COHORT_BEFORE_EXEC void bind_to_cpus(child_task& task) noexcept {
    task.at = stage::affinity;
    const auto mask = task.order->affinity;
    if (mask.count == 0)
        return;
    const long result = base::raw_call(SYS_sched_setaffinity, 0, static_cast<long>(mask.count),
                                       base::address(task.order->begin(mask)));
    if (result < 0 && task.order->affinity_is_needed != 0)
        fail(task, result);
}

COHORT_BEFORE_EXEC long write_file(const char* path, const char* text, long length) noexcept {
    const long fd = base::raw_call(SYS_openat, AT_FDCWD, base::address(path), O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return fd;
    const long result = base::raw_call(SYS_write, fd, base::address(text), length);
    base::raw_call(SYS_close, fd);
    return result;
}

COHORT_BEFORE_EXEC long argument_of(const protocol::child_step& step, int at,
                                    const char* data) noexcept {
    if (at == step.rest_at)
        return base::address(data + step.rest_offset);
    return at == step.data_at ? base::address(data) : static_cast<long>(step.arguments[at]);
}

COHORT_BEFORE_EXEC long take(const protocol::worker_order& order,
                             const protocol::child_step& step) noexcept {
    const char* const data = order.text(step.data);
    if (const char* const file = order.text(step.file); file != nullptr)
        return write_file(file, data, step.data.length);
    return base::raw_call(step.call, argument_of(step, 0, data), argument_of(step, 1, data),
                          argument_of(step, 2, data), argument_of(step, 3, data));
}

COHORT_BEFORE_EXEC void take_steps(child_task& task, std::size_t first, std::size_t end) noexcept {
    const protocol::worker_order& order = *task.order;
    for (std::size_t i = first; i < end; ++i) {
        task.at = stage::setting;
        task.item = static_cast<int>(i);
        const protocol::child_step& step = order.begin(order.steps)[i];
        if (const long result = take(order, step); result < 0 && step.may_fail == 0)
            fail(task, result);
    }
    task.item = -1;
    // The kernel forgets the signal when a process becomes another user.
    if (order.changes_user != 0)
        arm_parent_death(task);
}

COHORT_BEFORE_EXEC void write_pid(protocol::worker_order& order, const protocol::pid_field& field,
                                  long pid) noexcept {
    char digits[20];
    int count = 0;
    for (; pid > 0; pid /= 10)
        digits[count++] = static_cast<char>('0' + pid % 10);
    char* at = reinterpret_cast<char*>(&order) + field.offset;
    while (count > 0)
        *at++ = digits[--count];
    for (const char* c = order.text(field.suffix); *c != '\0'; ++c)
        *at++ = *c;
    *at = '\0';
}

COHORT_BEFORE_EXEC void execute(child_task& task) noexcept {
    task.at = stage::exec;
    // Handlers are gone by now: a signal that was pending takes its default action, before or after
    // exec.
    const std::uint64_t none = 0;
    base::raw_call(SYS_rt_sigprocmask, SIG_SETMASK, base::address(&none), 0, kernel_sigset_size);
    long error = -ENOENT;
    bool denied = false;
    const protocol::worker_order& order = *task.order;
    for (char* const* path = order.table(order.candidates); *path != nullptr; ++path) {
        error =
            base::raw_call(SYS_execve, base::address(*path), base::address(order.table(order.argv)),
                           base::address(order.table(order.envp)));
        denied = denied || error == -EACCES;
        if (error != -ENOENT && error != -ENOTDIR && error != -ENAMETOOLONG && error != -EACCES)
            fail(task, error);
    }
    fail(task, denied ? -EACCES : error);
}

/// Moves the pidfd to 3 or above: in a host without stdio the kernel gives it a number where others
/// expect stdio. The child does it because the starter is suspended until the child has executed,
/// and other threads must not see the low number. A child with a copied table can't do it;
/// own_pidfd() does it later.
COHORT_BEFORE_EXEC void move_pidfd(const child_task& task) noexcept {
    if (!task.shared_table || *task.pidfd >= 3)
        return;
    const long higher = base::raw_call(SYS_fcntl, *task.pidfd, F_DUPFD_CLOEXEC, 3);
    if (higher < 0)
        return;
    // Write before close: a child killed in between must not leave the number of a closed
    // descriptor.
    const int before = *task.pidfd;
    *task.pidfd = static_cast<int>(higher);
    base::raw_call(SYS_close, before);
}

}  // namespace

COHORT_BEFORE_EXEC void prepare_child(child_task& task) noexcept {
    arm_parent_death(task);
    lead_group(task);
    enter_cgroup(task);
    announce(task);
    // Before any step that can hang: a hanging child must hold no descriptor of its parent.
    clear_table(task);
    const protocol::worker_order& order = *task.order;
    take_steps(task, 0, order.first_steps);
    change_directory(task);
    if (task.order->umask >= 0)
        base::raw_call(SYS_umask, task.order->umask);
    place_descriptors(task);
    bind_to_cpus(task);
    take_steps(task, order.first_steps, order.steps.count);
}

COHORT_BEFORE_EXEC int run_child(void* argument) noexcept {
    child_task& task = *static_cast<child_task*>(argument);
    if (task.pidfd != nullptr) {
        move_pidfd(task);
        __atomic_store_n(task.pidfd_slot, *task.pidfd, __ATOMIC_RELEASE);
    }
    set_default_dispositions();
    prepare_child(task);
    protocol::worker_order& order = *task.order;
    for (std::size_t i = 0; i < order.pid_fields.count; ++i)
        write_pid(order, order.begin(order.pid_fields)[i], base::raw_call(SYS_getpid));
    keep_rights(task);
    execute(task);
    leave();
}

}  // namespace cohort::start
