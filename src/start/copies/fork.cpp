// SPDX-License-Identifier: BSL-1.0
#include "start/copies/fork.hpp"

#include "base/sys/descriptors.hpp"
#include "base/sys/processes.hpp"
#include "base/sys/threads.hpp"
#include "base/sys/tiers.hpp"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <new>
#include <optional>
#include <utility>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace cohort::start {
namespace {

/// Holds the child until its parent has a pidfd, by one word that both processes share. fork(3)
/// returns only a pid. The pid is sure to mean the child only while the child can't have ended,
/// because the host may wait for any child, or ignore SIGCHLD.
class release_flag {
public:
    release_flag() noexcept {
        void* const page = ::mmap(nullptr, sizeof(base::futex), PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (page != MAP_FAILED)
            word_ = new (page) base::futex(held);
    }
    release_flag(const release_flag&) = delete;
    release_flag& operator=(const release_flag&) = delete;
    ~release_flag() { unmap(); }
    void unmap() noexcept {
        if (word_ != nullptr)
            ::munmap(std::exchange(word_, nullptr), sizeof(base::futex));
    }

    explicit operator bool() const noexcept { return word_ != nullptr; }
    void hold() noexcept { *word_ = held; }
    void give() noexcept {
        *word_ = go;
        base::wake(*word_);
    }
    void await() noexcept {
        while (*word_ == held)
            base::wait_on(*word_, held);
    }

private:
    enum : std::uint32_t { held, go };
    base::futex* word_ = nullptr;
};

/// This thread's flag. If there is no memory for it, this start fails and the next one tries again.
release_flag& own_release_flag() noexcept {
    thread_local std::optional<release_flag> allowed;
    if (!allowed || !*allowed)
        allowed.emplace();
    return *allowed;
}

[[noreturn]] void run_child_of_fork(release_flag& allowed, protocol::order_block& order,
                                    start::start_tier tier,
                                    const std::function<void()>& body) noexcept {
    // Until the steps arm the signal that the user chose: the parent may die before.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != order->parent)
        ::_exit(127);
    allowed.await();
    allowed.unmap();  // the parent uses its page again, and user code could write to it
    reset_dispositions();
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (!base::survives_exec(fd))
            ::close(fd);
    run_copy(order, tier, body);
}

start::exec_result failure(int error) {
    start::exec_result result;
    result.failed = start::stage::clone;
    result.error = error;
    return result;
}

}  // namespace

start::exec_result start_by_fork(protocol::order_block& order, copy_reports& reports,
                                 const std::function<void()>& body, std::atomic<int>& pidfd_slot) {
    release_flag& allowed = own_release_flag();
    if (!allowed)
        return failure(ENOMEM);
    const start::start_tier tier{false, base::is_best(&base::tiers::close_range)};
    allowed.hold();
    const pid_t pid = ::fork();
    if (pid == 0)
        run_child_of_fork(allowed, order, tier, body);
    if (pid < 0)
        return failure(errno);

    std::error_code error;
    base::unique_fd pidfd = base::open_pidfd(pid, error);
    if (error) {
        if (base::is_child(pid))  // held, so the number is its own. It may also be stopped
            ::kill(pid, SIGKILL);
        base::reap_by_number(pid);
        return failure(error.value());
    }
    allowed.give();
    start::exec_result result;
    result.pid = pid;
    start::own_pidfd(result, pidfd.release(), pidfd_slot);
    reports.await(result, order->channel.ticket, pidfd_slot);
    return result;
}

}  // namespace cohort::start
