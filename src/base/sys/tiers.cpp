// SPDX-License-Identifier: BSL-1.0
#include "base/sys/tiers.hpp"

#include "base/sys/leaked.hpp"
#include "base/sys/processes.hpp"
#include "base/sys/threads.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cohort::base {
namespace {

tier_choice not_here(const char* what, int error) {
    return {false, std::string(what) + ": " + std::system_category().message(error)};
}

tier_choice probe_clone3() {
#if defined(__x86_64__) || defined(__aarch64__)
    // A size below that of the first version gives EINVAL before anything is read, so no child is
    // made.
    ::syscall(SYS_clone3, nullptr, 0);
    return errno == EINVAL ? tier_choice{} : not_here("clone3", errno);
#else
    return {false, "clone3: no entry for this architecture"};
#endif
}

tier_choice probe_close_range() {
    // The range is invalid, because UNSHARE with a valid one would unshare this thread's table.
    ::syscall(SYS_close_range, 1U, 0U, CLOSE_RANGE_UNSHARE);
    return errno == EINVAL ? tier_choice{} : not_here("close_range", errno);
}

tier_choice probe_pidfd_group() {
    // Flags are checked before the descriptor, so a kernel that knows this flag answers EBADF.
    const std::error_code error = send_signal_to_group(-1, 0);
    if (error.value() == EBADF)
        return {};
    return not_here("PIDFD_SIGNAL_PROCESS_GROUP", error.value());
}

/// A pidfd of a thread that has ended, because only this kind of dead task leaves no child to reap.
unique_fd pidfd_of_ended_thread() {
    constexpr unsigned of_thread = O_EXCL;  // PIDFD_THREAD, Linux 6.9
    unique_fd pidfd;
    try {
        const signals_blocked blocked;  // no handler of the host may run on the thread
        std::thread([&] {
            pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, ::gettid(), of_thread)));
        }).join();
    } catch (const std::system_error&) {
        // EAGAIN, a limit on threads: treated as if the kernel could not do it.
    }
    if (pidfd) {
        // join() returns a little before the kernel has released the task.
        pollfd released{pidfd.get(), 0, 0};
        while (::poll(&released, 1, 1000) < 0 && errno == EINTR) {
        }
    }
    return pidfd;
}

tier_choice probe_pidfd_info() {
    std::error_code error;
    const unique_fd self = open_pidfd(::getpid(), error);
    if (!self)
        return not_here("pidfd_open", error.value());
    if (!knows_pidfd_info(self.get()))
        return not_here("PIDFD_GET_INFO", errno);
    // Linux 6.13 and 6.14 know the call but not the exit status. Only a dead task can show whether
    // the kernel knows it.
    const unique_fd ended = pidfd_of_ended_thread();
    if (ended && stolen_status(ended.get()))
        return {};
    return {false, "PIDFD_GET_INFO: no PIDFD_INFO_EXIT"};
}

/// Whether a guardian can be started is for start/guardian/guardian_client.hpp to find out.
tier_choice guardian_choice() {
#if defined(COHORT_HAS_GUARDIAN)
    if (::getpid() == 1)
        return {false, "guardian: all of a PID namespace ends with its first process"};
    return {};
#else
    return {false, "guardian: none for this architecture"};
#endif
}

void force(tiers& found, std::string_view word) {
    const struct {
        std::string_view word;
        tier_choice& lowered;
    } known[] = {
        {"epoll", found.io_uring_wanted},      {"legacy_clone", found.clone3},
        {"no_close_range", found.close_range}, {"no_cgroup", found.cgroup_wanted},
        {"pgid", found.pidfd_group},           {"no_pidfd_info", found.pidfd_info},
        {"no_guardian", found.guardian},       {"no_file_system", found.names},
    };
    for (const auto& entry : known)
        if (entry.word == word) {
            entry.lowered = {false, "forced by COHORT_FORCE"};
            return;
        }
    const struct {
        std::string_view word;
        start_method method;
    } methods[] = {{"fork", start_method::fork}, {"forkserver", start_method::forkserver}};
    for (const auto& entry : methods)
        if (entry.word == word) {
            found.functions = entry.method;
            return;
        }
    if (!found.unknown_forced.empty())
        found.unknown_forced += ',';
    found.unknown_forced += word;
}

#ifdef COHORT_NOTE_REACHED
std::atomic<std::uint64_t>* map_reached() {
    const char* const path = ::secure_getenv("COHORT_TEST_REACHED");
    const unique_fd file(path == nullptr ? -1 : ::open(path, O_RDWR | O_CLOEXEC));
    if (!file)
        return nullptr;
    void* const page =
        ::mmap(nullptr, sizeof(std::uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    return page == MAP_FAILED ? nullptr : static_cast<std::atomic<std::uint64_t>*>(page);
}
#endif

/// The tiers in the order of their bits.
constexpr tier_choice tiers::*needs[] = {
    &tiers::io_uring_wanted, &tiers::clone3,     &tiers::close_range, &tiers::cgroup_wanted,
    &tiers::pidfd_group,     &tiers::pidfd_info, &tiers::guardian,    &tiers::names,
};

}  // namespace

#ifdef COHORT_NOTE_REACHED
void note_reached(reached what) noexcept {
    if (auto* const bits = leaked(&map_reached))
        bits->fetch_or(std::uint64_t{1} << static_cast<unsigned>(what), std::memory_order_relaxed);
}
#endif

bool is_best(tier_choice tiers::*need) {
    note_reached(static_cast<reached>(std::ranges::find(needs, need) - needs));
    return (current_tiers().*need).best;
}

tiers probe_tiers(std::string_view forced) {
    tiers found;
    found.clone3 = probe_clone3();
    found.close_range = probe_close_range();
    found.pidfd_group = probe_pidfd_group();
    found.pidfd_info = probe_pidfd_info();
    while (!forced.empty()) {
        const std::string_view word = forced.substr(0, forced.find(','));
        forced.remove_prefix(std::min(word.size() + 1, forced.size()));
        if (!word.empty())
            force(found, word);
    }
    if (found.guardian.best)
        found.guardian = guardian_choice();
    return found;
}

const tiers& current_tiers() {
    return leaked([] {
        const char* forced = ::secure_getenv("COHORT_FORCE");
        return probe_tiers(forced != nullptr ? forced : "");
    });
}

}  // namespace cohort::base
