// SPDX-License-Identifier: BSL-1.0
#include "start/exec/exec.hpp"

#include "base/sys/descriptors.hpp"
#include "base/sys/processes.hpp"
#include "base/sys/raw_call.hpp"
#include "base/sys/tiers.hpp"
#include "start/exec/child.hpp"
#include "start/exec/clone.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace cohort::start {
namespace {

/// Whether the file has a set-ID bit or capabilities; true if that can't be found out.
bool gives_rights(const char* program) noexcept {
    struct stat status {};
    if (::stat(program, &status) != 0 || (status.st_mode & (S_ISUID | S_ISGID)) != 0)
        return true;
    return ::getxattr(program, "security.capability", nullptr, 0) >= 0 ||
           (errno != ENODATA && errno != EOPNOTSUPP);
}

struct user_ids {
    uid_t real = 0;
    uid_t effective = 0;
    uid_t saved = 0;
};

COHORT_BEFORE_EXEC bool gains_no_privileges() noexcept {
    return base::raw_call(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
}

COHORT_BEFORE_EXEC user_ids ids_by(long call) noexcept {
    user_ids ids;
    base::raw_call(call, base::address(&ids.real), base::address(&ids.effective),
                   base::address(&ids.saved));
    return ids;
}

}  // namespace

protocol::own_program executing_itself(int mark, int file, const char* program) noexcept {
    protocol::own_program own{.mark = mark, .gives_rights = gives_rights(program)};
    struct stat status {};
    if (::fstat(file, &status) == 0) {
        own.owner = status.st_uid;
        own.group = status.st_gid;
    }
    return own;
}

COHORT_BEFORE_EXEC void keep_rights(child_task& task) noexcept {
    const protocol::own_program& own = task.order->itself;
    if (own.mark < 0)
        return;
    task.at = stage::credentials;
    const user_ids user = ids_by(SYS_getresuid);
    const user_ids group = ids_by(SYS_getresgid);
    const bool differ = user.real != user.effective || group.real != group.effective;
    if (differ && (own.gives_rights != 0 || user.real != 0 || gains_no_privileges()))
        fail(task, -EPERM);
    // With no_new_privs the kernel ignores the bits, and the worker knows that exec has given it no
    // rights.
    long result = 0;
    if (own.gives_rights != 0)
        result = base::raw_call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1);
    // Another thread may have changed the user since the file was made. If the real and effective
    // ids are the same, a worker accepts a file of root's too and does not check the file's group.
    const bool is_owned = own.owner == user.effective && (!differ || own.group == group.effective);
    if (result == 0 && !is_owned) {
        result = base::raw_call(SYS_fchown, own.mark, user.effective,
                                differ ? group.effective : static_cast<gid_t>(-1));
        if (result < 0 && own.owner == 0 && !differ)
            result = 0;
    }
    if (result < 0)
        fail(task, result);
}

namespace {

/// From this number on reopening files is cheaper than copying the table: the kernel copies a table
/// in about 30 ns for each number up to the highest one that is kept, and opens a file in some
/// microseconds.
constexpr int costly_number = 512;

bool can_do_without(const protocol::worker_order& order, const protocol::descriptor_move& move) {
    return move.path.offset != 0 || move.memory_file != 0 || order.descriptor(move.source) < 3;
}

std::string path_of(const protocol::worker_order& order, int fd) {
    return fmt::format("/proc/{}/fd/{}", order.parent, fd);
}

/// The paths in /proc by which the child of a process with many descriptors reopens its own; the
/// directory's is the last. Empty: the child copies the table.
std::vector<std::string> reopened_by(const protocol::worker_order& order) {
    const auto kept = std::span(order.begin(order.kept), order.kept.count);
    const auto moves = order.all_moves();
    std::vector<std::string> paths;
    if (!kept.empty() && kept.back() >= costly_number &&
        std::ranges::all_of(moves, [&](const auto& move) { return can_do_without(order, move); }))
        for (const protocol::descriptor_move& move : moves)
            paths.push_back(move.memory_file != 0 ? path_of(order, order.descriptor(move.source))
                                                  : std::string());
    const int directory = order.descriptor(order.directory);
    if (!paths.empty())
        paths.push_back(directory >= 3 ? path_of(order, directory) : std::string());
    return paths;
}

std::vector<const char*> pointers_to(const std::vector<std::string>& paths) {
    std::vector<const char*> pointers;
    for (const std::string& path : paths)
        pointers.push_back(path.empty() ? nullptr : path.c_str());
    return pointers;
}

bool unknown_call(long result) noexcept {
    return result == -ENOSYS || result == -EPERM || result == -EINVAL || result == -E2BIG;
}

long clone_child(child_task& task, start_tier tier, const child_stack& stack, int cgroup,
                 clone_notes notes) noexcept {
    const auto table = tier.close_range ? descriptor_table::shared : descriptor_table::copied;
    long pid = -ENOSYS;
    if (tier.clone3)
        pid = clone_and_wait(clone_entry::clone3, table, stack, run_child, &task, notes, cgroup);
    // Without CLONE_INTO_CGROUP the child enters the cgroup itself. The file is opened here,
    // because the child may share this table.
    base::unique_fd procs;
    if (pid < 0 && cgroup >= 0) {
        std::error_code error;
        procs = base::open_cgroup_procs(cgroup, error);
        task.enters_cgroup = true;
        task.cgroup_procs = error ? -error.value() : procs.get();
        if (tier.clone3)
            pid = clone_and_wait(clone_entry::clone3, table, stack, run_child, &task, notes);
    }
    // The probe has shown that the call exists, but some flags may be missing, or a filter of
    // system calls may have been set since.
    if (unknown_call(pid))
        pid = clone_and_wait(clone_entry::legacy, table, stack, run_child, &task, notes);
    return pid;
}

/// This thread's stack for its children. If there is no memory for it, this start fails and the
/// next one tries again.
const child_stack& own_stack() noexcept {
    thread_local std::optional<child_stack> stack;
    if (!stack || !*stack)
        stack.emplace();
    return *stack;
}

/// Starts one child. @param reopened  see reopened_by()
exec_result attempt(protocol::order_block& order, std::atomic<int>& pidfd_slot, start_tier tier,
                    const child_stack& stack, const std::vector<std::string>& reopened,
                    std::optional<std::chrono::milliseconds> longest) {
    // The child must not rely on the C++ runtime, so it writes the atomic as a plain int.
    static_assert(std::atomic<int>::is_always_lock_free && sizeof pidfd_slot == sizeof(int));
    const std::vector<const char*> paths = pointers_to(reopened);
    int pidfd = -1;
    order.rebase();
    child_task task(*order);
    task.shared_table = tier.close_range;
    task.reopened = paths.empty() ? nullptr : paths.data();
    task.pidfd = &pidfd;
    task.pidfd_slot = reinterpret_cast<int*>(&pidfd_slot);

    exec_result result;
    memory_user user = 0;
    std::optional<start_limit> limit;
    if (longest)
        limit.emplace(user, *longest);
    if (limit && limit->error()) {
        result.failed = stage::clone;
        result.error = limit->error().value();
        return result;
    }
    const memory_guard guard(order->changes_user != 0);
    const long pid = clone_child(task, tier, stack, order->descriptor(order->cgroup),
                                 {&pidfd, limit ? &user : nullptr});
    if (pid < 0) {
        result.failed = stage::clone;
        result.error = static_cast<int>(-pid);
        return result;
    }
    result.pid = static_cast<pid_t>(pid);
    own_pidfd(result, pidfd, pidfd_slot);
    result.is_unguarded = task.is_unguarded;
    if (task.error != 0 || task.at != stage::exec) {
        result.failed = task.at;
        result.error = task.error != 0 ? task.error : EINTR;
        result.item = task.item;
    }
    if (limit && limit->end()) {
        result.failed = task.at;
        result.error = ETIMEDOUT;
    }
    return result;
}

}  // namespace

const char* to_string(stage s) noexcept {
    switch (s) {
    case stage::none:
        return "none";
    case stage::limit:
        return "limit";
    case stage::memory_file:
        return "memory file";
    case stage::pipe:
        return "pipe";
    case stage::socket:
        return "socket";
    case stage::logs:
        return "logs";
    case stage::clone:
        return "clone";
    case stage::parent_death:
        return "parent death signal";
    case stage::process_group:
        return "process group";
    case stage::cgroup:
        return "cgroup";
    case stage::descriptors:
        return "descriptors";
    case stage::chdir:
        return "chdir";
    case stage::standard_input:
        return "stdin";
    case stage::standard_output:
        return "stdout";
    case stage::standard_error:
        return "stderr";
    case stage::redirect:
        return "redirect";
    case stage::affinity:
        return "affinity";
    case stage::setting:
        return "setting";
    case stage::credentials:
    case stage::exec:
        return "exec";
    }
    return "unknown";
}

std::string attempted(stage s) {
    if (s == stage::exec)
        return "exec(\"/proc/self/exe\")";
    if (s == stage::credentials)
        return "exec(\"/proc/self/exe\") by a process whose real and effective user or group "
               "differ, "
               "or change meanwhile (make them the same with setresuid and setresgid, or use "
               "start_method::fork)";
    if (s == stage::descriptors && !base::is_best(&base::tiers::close_range))
        return "open(\"/proc/self/fd\")";
    return to_string(s);
}

void own_pidfd(exec_result& result, int pidfd, std::atomic<int>& pidfd_slot) noexcept {
    result.pidfd.reset(pidfd);
    if (pidfd < 3) {
        std::error_code full;
        if (base::unique_fd higher = base::duplicate(pidfd, full)) {
            pidfd_slot.store(higher.get(), std::memory_order_release);
            result.pidfd = std::move(higher);
            return;
        }
    }
    // The child stores it too, but it may have been killed before its first instruction.
    pidfd_slot.store(pidfd, std::memory_order_release);
}

start_tier best_start_tier() {
    return {base::is_best(&base::tiers::clone3), base::is_best(&base::tiers::close_range)};
}

exec_result start_by_exec(protocol::order_block& order, std::atomic<int>& pidfd_slot) {
    return start_by_exec(order, pidfd_slot, best_start_tier());
}

exec_result start_by_exec(protocol::order_block& order, std::atomic<int>& pidfd_slot,
                          start_tier tier, std::optional<std::chrono::milliseconds> longest) {
    const child_stack& stack = own_stack();
    if (!stack) {
        exec_result result;
        result.failed = stage::clone;
        result.error = ENOMEM;
        return result;
    }
    order.rebase();
    std::vector<std::string> reopened;
    if (tier.close_range)
        reopened = reopened_by(*order);
    exec_result result = attempt(order, pidfd_slot, tier, stack, reopened, longest);
    const bool was_killed = result.error == EINTR || (longest && result.error == ETIMEDOUT);
    if (reopened.empty() || result.failed != stage::descriptors || was_killed)
        return result;
    // stat succeeded but open failed (permissions): retry with a copied table.
    exec_result second = attempt(order, pidfd_slot, tier, stack, {}, longest);
    second.first_child = std::move(result.pidfd);
    return second;
}

bool has_executed(int pidfd) noexcept {
    // exec gives the child the exit signal SIGCHLD, and __WCLONE finds only children with another
    // one. There is no other way to tell a program that was killed at once from a child that was
    // killed inside execve.
    siginfo_t found{};
    long result;
    do {
        result = ::syscall(SYS_waitid, P_PIDFD, pidfd, &found,
                           WEXITED | WNOHANG | WNOWAIT | __WCLONE, nullptr);
    } while (result != 0 && errno == EINTR);
    return result != 0 && errno == ECHILD;
}

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
