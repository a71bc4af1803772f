// SPDX-License-Identifier: BSL-1.0
#include "guardian/guardian_client.hpp"

#include "exec/detached.hpp"
#include "orders/order_writer.hpp"
#include "sys/error.hpp"
#include "sys/memfd.hpp"
#include "sys/pidfd.hpp"
#include "sys/socket.hpp"
#include "sys/tiers.hpp"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <span>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace cohort::guardian {
namespace {

constexpr unsigned char program[] = {
#if defined(COHORT_HAS_GUARDIAN)
#include "guardian_image.inc.hpp"
#else
    0
#endif
};

/// Whether this process adopts orphans, as PID 1 or as a subreaper. The guardian would become its
/// child, and a wait of the application would find it. The pid is read each time, because this may
/// be a forked copy in a new pid namespace.
bool takes_in_orphans() noexcept {
    int subreaper = 0;
    return ::getpid() == 1 || (::prctl(PR_GET_CHILD_SUBREAPER, &subreaper) == 0 && subreaper != 0);
}

std::error_code execute(int parent, int connection, int file, sys::unique_fd& between) {
    orders::order_writer order;
    order.add_candidate("/proc/self/fd/5");
    static_assert(orders::guardian_program == 5);
    order.add_argument("cohort-guardian");
    order.set_working_directory("/");
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        order.open(fd, "/dev/null", O_RDWR);
    order.place(orders::guardian_parent, parent);
    order.place(orders::guardian_connection, connection);
    order.place(orders::guardian_program, file);
    order.head.own_session = 1;
    auto block = order.finish();
    const sys::tiers& tiers = sys::current_tiers();
    return exec::start_detached(block, {tiers.clone3.best, tiers.close_range.best}, between);
}

/// Starts a guardian.
/// @param ours     is set to this process' end of the connection. When that is closed, a guardian
///                 without workers ends at once
/// @param between  see start_detached()
std::error_code launch(sys::unique_fd& ours, sys::unique_fd& between) {
    if (takes_in_orphans() || !sys::credentials::now().uniform())
        return std::make_error_code(std::errc::operation_not_permitted);
    std::error_code error;
    const auto file = sys::make_program_memfd("cohort-guardian", error);
    if (!error)
        error = sys::write_at(file.get(), std::as_bytes(std::span(program)), 0);
    if (error)
        return error;
    const auto self = sys::open_pidfd(::getpid(), error);
    if (error)
        return error;
    sys::unique_fd theirs;
    if ((error = sys::make_socket_pair(ours, theirs)))
        return error;
    const int on = 1;  // each message carries its sender's user
    if (::setsockopt(theirs.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0)
        return sys::last_error();
    return execute(self.get(), theirs.get(), file.get(), between);
}

}  // namespace

guardian::serving guardian::ensure(time_point now) {
    const std::lock_guard lock(mutex_);
    one& own = of_this_user();
    if (!own.serves())
        start_if_due(own, now);
    return own.serving_now();
}

guardian::serving guardian::ensure_started(time_point now) {
    const std::lock_guard lock(mutex_);
    one& own = of_this_user();
    if (!own.connection)
        start_if_due(own, now);
    return own.serving_now();
}

void guardian::start_if_due(one& own, time_point now) {
    if (now < own.not_before || !sys::current_tiers().guardian.best)
        return;
    // Workers are started without a guardian rather than not at all. If the next attempt may
    // succeed, also because this guardian was killed during its start, the next start tries again.
    const auto error = start(own);
    const bool may_succeed_now = sys::is_shortage(error) ||
                                 error == std::errc::operation_not_permitted ||
                                 error == std::errc::interrupted;
    if (!error) {
        own.pause = first_pause;
    } else if (!may_succeed_now) {
        // A guardian may never be possible here, so not every start must pay for an attempt.
        own.not_before = now + own.pause;
        own.pause = std::min(2 * own.pause, longest_pause);
    }
}

guardian::one& guardian::of_this_user() {
    const auto user = sys::user_ids::now();
    const auto found = std::ranges::find(of_users_, user, &one::user);
    if (found != of_users_.end())
        return *found;
    return of_users_.emplace_back(one{.user = user, .connection = {}, .number = ++last_number_});
}

bool guardian::one::serves() const {
    pollfd polled{connection.get(), 0, 0};
    return connection && ::poll(&polled, 1, 0) <= 0;  // -1: a setuid in another thread interrupted
}

std::error_code guardian::start(one& fresh) {
    sys::unique_fd ours;
    sys::unique_fd between;
    const auto error = launch(ours, between);
    if (between)
        reap_(std::move(between));
    return error ? error : connect(fresh, std::move(ours));
}

std::error_code guardian::connect(one& to, sys::unique_fd fresh) {
    if (!to.connection)
        to.connection = std::move(fresh);
    else if (::dup3(fresh.get(), to.connection.get(), O_CLOEXEC) < 0)
        return sys::last_error();
    to.number = ++last_number_;
    is_stuck_ = false;
    return {};
}

void guardian::tell_late(const orders::guard_order& order, int pidfd) noexcept {
    constexpr int full_socket_wait_ms = 100;
    pollfd room{order.connection, POLLOUT, 0};
    if (!is_stuck_)
        ::poll(&room, 1, full_socket_wait_ms);
    is_stuck_ = !orders::tell_guardian(order, pidfd);
    if (!is_stuck_)
        return;
    // If another guardian is started, its connection has the same number, see connect().
    try {
        ensure();
        is_stuck_ = !orders::tell_guardian(order, pidfd);
    } catch (const std::exception&) {  // no memory
    }
}

sys::tier_choice probe_guardian() {
    const auto& wanted = sys::current_tiers().guardian;
    if (!wanted.best)
        return wanted;
    sys::unique_fd ours;
    sys::unique_fd between;
    const auto error = launch(ours, between);
    if (between)
        sys::reap_when_ended(between.get());
    return error ? sys::tier_choice{false, "guardian: " + error.message()} : sys::tier_choice{};
}

}  // namespace cohort::guardian
