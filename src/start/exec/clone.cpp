// SPDX-License-Identifier: BSL-1.0
#include "start/exec/clone.hpp"

#include "base/files/fork_held.hpp"
#include "base/sys/processes.hpp"
#include "base/sys/raw_call.hpp"
#include "base/sys/threads.hpp"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <utility>

#include <linux/sched.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cohort::start {
namespace {

struct guarded_starts {
    std::mutex mutex;
    int count = 0;
    bool was_dumpable = false;  // before the first of them

    /// The copy has its own memory, which no child shares, and none of these starts.
    void becomes_copy() noexcept {
        if (std::exchange(count, 0) > 0 && was_dumpable)
            ::prctl(PR_SET_DUMPABLE, 1);
    }
};

guarded_starts& starts() { return base::fork_held<guarded_starts>::get(); }

}  // namespace

memory_guard::memory_guard(bool is_needed) : is_needed_(is_needed) {
    if (!is_needed_)
        return;
    auto& all = starts();
    const std::lock_guard lock(all.mutex);
    if (all.count++ == 0)
        all.was_dumpable = ::prctl(PR_GET_DUMPABLE) == 1;
}

bool memory_guard::memory_is_dumpable() {
    auto& all = starts();
    const std::lock_guard lock(all.mutex);
    return all.count > 0 ? all.was_dumpable : ::prctl(PR_GET_DUMPABLE) == 1;
}

memory_guard::~memory_guard() {
    if (!is_needed_)
        return;
    auto& all = starts();
    const std::lock_guard lock(all.mutex);
    if (--all.count == 0 && all.was_dumpable)
        ::prctl(PR_SET_DUMPABLE, 1);
}

namespace {

/// How long a killed process may take before it is looked at again. It may not have been found,
/// because it had never run, or because no descriptor was free.
constexpr std::chrono::milliseconds until_next_look{10};

}  // namespace

bool kill_user(const memory_user& user) noexcept {
    const auto pid = user.load();
    if (pid == 0)
        return false;
    std::error_code error;
    const auto pidfd = base::open_pidfd(static_cast<pid_t>(pid), error);
    // While it uses this memory it lives, and nobody else has its number.
    return pidfd && user == pid && !base::send_signal(pidfd.get(), SIGKILL);
}

void end_user(const memory_user& user) noexcept {
    while (const auto pid = user.load()) {
        kill_user(user);
        base::wait_on(user, pid, base::deadline_in(until_next_look));
    }
}

start_limit::start_limit(const memory_user& child, std::chrono::milliseconds longest) noexcept
    : child_(child) {
    try {
        const base::signals_blocked blocked;  // no handler of the host may run on the thread
        thread_ = std::thread([this, longest] { watch(longest); });
    } catch (const std::system_error& e) {
        error_ = e.code();
    }
}

bool start_limit::end() noexcept {
    if (thread_.joinable()) {
        is_over_ = 1;
        base::wake(is_over_);
        thread_.join();
    }
    return has_killed_;
}

void start_limit::watch(std::chrono::milliseconds longest) noexcept {
    auto until = base::deadline_in(longest);
    while (is_over_ == 0) {
        if (base::wait_on(is_over_, 0, until))
            continue;
        if (kill_user(child_))
            has_killed_ = true;
        until = base::deadline_in(until_next_look);
    }
}

namespace {

constexpr std::size_t stack_size = 64 * 1024;

COHORT_BEFORE_EXEC std::size_t page_size() noexcept {
    return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

COHORT_BEFORE_EXEC void give_cgroup(clone_args& args, int cgroup) noexcept {
    if (cgroup < 0)
        return;
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<std::uint64_t>(cgroup);
}

#if defined(__x86_64__)

/// clone or clone3, where the child begins in main(argument) on its own stack instead of returning
/// here.
COHORT_BEFORE_EXEC long enter(long number, long a, long b, long c, long child_tid,
                              int (*main)(void*), void* argument) noexcept {
    long result;
    // The kernel copies all registers but rax, rcx and r11 to the child.
    register long r10 asm("r10") = child_tid;
    register long r8 asm("r8") = 0;  // tls
    register auto r12 asm("r12") = main;
    register auto r13 asm("r13") = argument;
    asm volatile("syscall\n\t"
                 "testq %%rax, %%rax\n\t"
                 "jnz 1f\n\t"
                 "xorl %%ebp, %%ebp\n\t"  // the end of the chain of frames
                 "movq %%r13, %%rdi\n\t"
                 "callq *%%r12\n\t"
                 "ud2\n"
                 "1:"
                 : "=a"(result)
                 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r12), "r"(r13)
                 : "rcx", "r11", "memory", "cc");
    return result;
}

#elif defined(__aarch64__)

/// clone or clone3, where the child begins in main(argument) on its own stack instead of returning
/// here.
COHORT_BEFORE_EXEC long enter(long number, long a, long b, long c, long child_tid,
                              int (*main)(void*), void* argument) noexcept {
    register long x8 asm("x8") = number;
    register long x0 asm("x0") = a;
    register long x1 asm("x1") = b;
    register long x2 asm("x2") = c;
    register long x3 asm("x3") = 0;  // tls
    register long x4 asm("x4") = child_tid;
    register auto x5 asm("x5") = main;
    register auto x6 asm("x6") = argument;
    asm volatile("svc #0\n\t"
                 "cbnz x0, 1f\n\t"
                 "mov x29, xzr\n\t"  // the end of the chain of frames
                 "mov x30, xzr\n\t"
                 "mov x0, x6\n\t"
                 "blr x5\n\t"
                 "brk #1\n"
                 "1:"
                 : "+r"(x0)
                 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5), "r"(x6)
                 : "memory", "cc");
    return x0;
}

#endif

}  // namespace

child_stack::child_stack() noexcept {
    const std::size_t guard = page_size();
    void* memory = ::mmap(nullptr, guard + stack_size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED)
        return;
    if (::mprotect(memory, guard, PROT_NONE) != 0) {
        ::munmap(memory, guard + stack_size);
        return;
    }
    base_ = static_cast<std::byte*>(memory);
}

child_stack::~child_stack() {
    if (base_ != nullptr)
        ::munmap(base_, page_size() + stack_size);
}

COHORT_BEFORE_EXEC std::byte* child_stack::lowest() const noexcept { return base_ + page_size(); }
COHORT_BEFORE_EXEC std::byte* child_stack::top() const noexcept { return lowest() + stack_size; }
COHORT_BEFORE_EXEC std::size_t child_stack::size() const noexcept { return stack_size; }

COHORT_BEFORE_EXEC long clone_and_wait(clone_entry entry, descriptor_table table,
                                       const child_stack& stack, int (*main)(void*), void* argument,
                                       clone_notes notes, int cgroup) noexcept {
    // No exit signal, because the host must not notice a child that never becomes a program. exec
    // sets it to SIGCHLD.
    std::uint64_t flags = CLONE_VM | CLONE_VFORK;
    if (table == descriptor_table::shared)
        flags |= CLONE_FILES;
    if (notes.pidfd != nullptr)
        flags |= CLONE_PIDFD;
    if (notes.user != nullptr)
        flags |= CLONE_CHILD_CLEARTID |
                 (notes.pidfd != nullptr ? CLONE_CHILD_SETTID : CLONE_PARENT_SETTID);
#if defined(__x86_64__) || defined(__aarch64__)
    if (entry == clone_entry::clone3) {
        clone_args args{};
        args.flags = flags | CLONE_CLEAR_SIGHAND;
        args.pidfd = reinterpret_cast<std::uintptr_t>(notes.pidfd);
        args.parent_tid = reinterpret_cast<std::uintptr_t>(notes.user);
        args.child_tid = reinterpret_cast<std::uintptr_t>(notes.user);
        args.stack = reinterpret_cast<std::uintptr_t>(stack.lowest());
        args.stack_size = stack.size();
        give_cgroup(args, cgroup);
        return enter(SYS_clone3, base::address(&args), sizeof args, 0, 0, main, argument);
    }
    // The older call has the pidfd where the parent's tid would be, clone(2).
    const long at_parent =
        notes.pidfd != nullptr ? base::address(notes.pidfd) : base::address(notes.user);
    return enter(SYS_clone, static_cast<long>(flags), base::address(stack.top()), at_parent,
                 base::address(notes.user), main, argument);
#else
    if (entry == clone_entry::clone3)
        return -ENOSYS;
    int* const at_parent =
        notes.pidfd != nullptr ? notes.pidfd : reinterpret_cast<int*>(notes.user);
    const int pid = ::clone(main, stack.top(), static_cast<int>(flags), argument, at_parent,
                            nullptr, notes.user);
    return pid < 0 ? -errno : pid;
#endif
}

namespace {

long result_of(long returned) noexcept { return returned < 0 ? -errno : returned; }

/// What fork(3) sets up for the C library in the child, and a bare clone does not: the place of the
/// thread's id, and the list of its robust mutexes.
struct thread_facts {
    long tid_address = 0;  // 0: the kernel can't say (no CONFIG_CHECKPOINT_RESTORE)
    void* robust_list = nullptr;
    std::size_t robust_length = 0;

    thread_facts() noexcept {
        if (::prctl(PR_GET_TID_ADDRESS, &tid_address, 0, 0, 0) != 0)
            tid_address = 0;
        ::syscall(SYS_get_robust_list, 0, &robust_list, &robust_length);
    }
};

}  // namespace

long clone_sibling(clone_entry entry, int& pidfd, pid_t& forked, int cgroup) noexcept {
    const thread_facts facts;
    std::uint64_t flags = CLONE_PARENT | CLONE_PIDFD;
    if (facts.tid_address != 0)
        flags |= CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID;
    long pid = -ENOSYS;
    if (entry == clone_entry::clone3) {
        clone_args args{};
        args.flags = flags | CLONE_PARENT_SETTID;
        args.pidfd = reinterpret_cast<std::uintptr_t>(&pidfd);
        args.parent_tid = reinterpret_cast<std::uintptr_t>(&forked);
        args.child_tid = static_cast<std::uint64_t>(facts.tid_address);
        give_cgroup(args, cgroup);
        pid = result_of(::syscall(SYS_clone3, &args, sizeof args));
    } else {
        // The legacy call has one argument for both the pid and the pidfd, and the pid must not be
        // missed. The pidfd is opened afterwards. It means the child, because nobody waits for the
        // child before being notified.
        flags = (flags & ~static_cast<std::uint64_t>(CLONE_PIDFD)) | CLONE_PARENT_SETTID;
#if defined(__x86_64__)
        pid = result_of(::syscall(SYS_clone, flags, nullptr, &forked, facts.tid_address, 0));
#else
        pid = result_of(::syscall(SYS_clone, flags, nullptr, &forked, 0, facts.tid_address));
#endif
        if (pid > 0)
            pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    }
    if (pid == 0)
        ::syscall(SYS_set_robust_list, facts.robust_list, facts.robust_length);
    return pid;
}

}  // namespace cohort::start
