// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/credentials.hpp"
#include "base/sys/descriptors.hpp"
#include "base/sys/tiers.hpp"
#include "protocol/order/guard.hpp"
#include "start/exec/clone.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <system_error>

#include <sys/types.h>

namespace cohort::start {

/// The application's side of the guardian. The guardian is a small process that waits for the
/// application's death and then ends what the application's workers left in their process groups.
/// Parent-death signals are not enough, because they reach only the workers themselves. At last it
/// removes the names of shared memory that the application and its workers have left.
///
/// The guardian is not a child of the application. It has a session of its own, and holds nothing
/// of the application but a pidfd. One system call reports a worker to it; it never answers.
/// Whether it lives makes no difference until the application dies. If it was killed, or can hold
/// no more workers, the next start of a worker or group replaces it; the new guardian gets the
/// workers from then on.
///
/// Each guardian gets the names when it is started, even if there are none yet, because
/// the application may make the first one after it has started its last group.
///
/// If the application changes its user, it gets another guardian. The first one keeps its workers,
/// because only their own user may signal them. A set-user-ID program has no guardian, because code
/// that has dropped rights must not use the guardian's rights.
class client {
public:
    using time_point = std::chrono::steady_clock::time_point;

    /// @param reap  takes over the pidfd of a child that ends at once. Called on any thread.
    /// @param longest_start  a guardian that has not executed by then is killed, and is no guardian
    explicit client(std::function<void(base::unique_fd pidfd)> reap,
                    std::chrono::milliseconds longest_start = longest_helper_wait)
        : reap_(std::move(reap)), longest_start_(longest_start) {}

    /// The guardian of the present user, as ensure_running() found or started it.
    struct instance {
        int connection = -1;       // -1: there is no guardian
        std::uint64_t number = 0;  // each guardian, and each user, has another number

        protocol::guard_order order(protocol::guard_message message) const {
            return {connection, message};
        }
    };
    /// Makes sure that a guardian runs, if possible. For starter threads. After a failure that will
    /// probably last, calls do not try again for a while, which grows with each such failure.
    instance ensure_running(time_point now = std::chrono::steady_clock::now());
    /// Like ensure_running(), without the system call that looks whether a started guardian still
    /// runs. For a start that sends the guardian a message before the first worker exists, and
    /// calls resend() if that fails.
    instance ensure_started(time_point now = std::chrono::steady_clock::now());
    /// Sends a message about a worker or a cgroup again when the first attempt has failed. Waits a
    /// moment for a slow guardian. If the guardian is gone or can hold no more, asks another one.
    void resend(const protocol::guard_order& order, int descriptor) noexcept;

private:
    static constexpr std::chrono::seconds first_pause{1};
    static constexpr std::chrono::seconds longest_pause{60};

    /// The guardian of one user of this process, if one could be started.
    struct user_guardian {
        base::user_ids user;
        base::unique_fd connection;  // its number stays: another start may be about to write to it
        time_point not_before{};     // no attempt to start one before this time
        std::chrono::seconds pause = first_pause;
        std::uint64_t number = 0;

        bool accepts_messages() const;
        instance current() const { return {connection ? connection.get() : -1, number}; }
    };

    user_guardian& guardian_of_this_user();
    void start_if_due(user_guardian& own, time_point now);
    std::error_code start(user_guardian& own);
    std::error_code connect(user_guardian& own, base::unique_fd connection);

    const std::function<void(base::unique_fd)> reap_;
    const std::chrono::milliseconds longest_start_;
    std::mutex mutex_;
    std::list<user_guardian> guardians_;
    std::uint64_t last_number_ = 0;
    std::atomic<bool> is_stuck_ = false;  // it was too slow once, so no call waits for it again
};

/// Whether a guardian can be started. Finds out by starting one that has nothing to do.
base::tier_choice probe_guardian();

}  // namespace cohort::start
