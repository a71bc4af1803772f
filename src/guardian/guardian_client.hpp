// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "orders/guard.hpp"
#include "sys/credentials.hpp"
#include "sys/tiers.hpp"
#include "sys/unique_fd.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <system_error>

#include <sys/types.h>

namespace cohort::guardian {

/// The application's side of its guardian: a small process that ends, after the application's
/// death, what its workers have left in their process groups. Parent-death signals reach the
/// workers only.
///
/// It is no child of the application's, in a session of its own, and holds nothing of it but a
/// pidfd. It is told of each worker in one system call and tells nothing back; whether it lives
/// makes no difference until the application dies. One that was ended, or that can hold no more, is
/// replaced when next a worker or a group is started, for the workers from then on. An application
/// that changes its user gets another one: the first keeps the workers that it has, which only
/// their own user may signal. There is none for a set-user-ID program: who drops rights must not
/// use the guardian's.
class guardian {
public:
    using time_point = std::chrono::steady_clock::time_point;

    /// @param reap  takes over the pidfd of a child that ends at once. Any thread.
    explicit guardian(std::function<void(sys::unique_fd pidfd)> reap) : reap_(std::move(reap)) {}

    /// The guardian of this user, as ensure() has found or started it.
    struct serving {
        int connection = -1;       // -1: there is none
        std::uint64_t number = 0;  // another guardian, or another user, has another number

        orders::guard_order order(orders::guard_message word) const { return {connection, word}; }
    };
    /// Sees to it that one runs, if that can be. For starter threads. Where it failed it is tried
    /// again after a while, and after a longer one each time.
    serving ensure(time_point now = std::chrono::steady_clock::now());
    /// Once more, of a worker that could not tell by itself. Waits for a slow guardian, for a
    /// moment; tells another one where the first is gone or can hold no more.
    void tell_late(const orders::guard_order& order, int pidfd) noexcept;

private:
    static constexpr std::chrono::seconds first_pause{1};
    static constexpr std::chrono::seconds longest_pause{60};

    struct one {
        sys::credentials user;
        sys::unique_fd connection;  // keeps its number: another start may be about to write to it
        time_point not_before{};    // after one that could not be started
        std::chrono::seconds pause = first_pause;
        std::uint64_t number = 0;

        bool serves() const;
    };

    one& of_this_user();
    void start_if_due(one& own, time_point now);
    std::error_code start(one& fresh);
    std::error_code connect(one& to, sys::unique_fd fresh);

    const std::function<void(sys::unique_fd)> reap_;
    std::mutex mutex_;
    std::list<one> of_users_;
    std::uint64_t last_number_ = 0;
    std::atomic<bool> is_stuck_ = false;  // nobody waits for it any more
};

/// Whether there can be one: tried by starting one that has nothing to do.
sys::tier_choice probe_guardian();

}  // namespace cohort::guardian
