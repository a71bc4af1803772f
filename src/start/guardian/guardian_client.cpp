// SPDX-License-Identifier: BSL-1.0
#include "start/guardian/guardian_client.hpp"

#include "base/files/named_file.hpp"
#include "base/files/settings.hpp"
#include "base/sys/descriptors.hpp"
#include "base/sys/memfd.hpp"
#include "base/sys/processes.hpp"
#include "base/sys/socket.hpp"
#include "base/sys/tiers.hpp"
#include "protocol/order/order_writer.hpp"
#include "start/exec/exec.hpp"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <span>
#include <tuple>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace cohort::start {
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
bool adopts_orphans() noexcept {
    int subreaper = 0;
    return ::getpid() == 1 || (::prctl(PR_GET_CHILD_SUBREAPER, &subreaper) == 0 && subreaper != 0);
}

std::error_code execute_program(int parent, int connection, int file,
                                std::chrono::milliseconds longest, base::unique_fd& intermediate) {
    protocol::order_writer order;
    order.add_candidate("/proc/self/fd/5");
    static_assert(protocol::guardian_program == 5);
    order.add_argument("cohort-guardian");
    order.set_working_directory("/");
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        order.open(fd, "/dev/null", O_RDWR);
    order.place(protocol::guardian_parent, parent);
    order.place(protocol::guardian_connection, connection);
    order.place(protocol::guardian_program, file);
    order.head.own_session = 1;
    auto block = order.finish();
    return start::start_detached(block, start::best_start_tier(), longest, intermediate);
}

/// Tells a guardian, before anything else, which names of shared memory it is to remove. If that
/// fails, the next program of this user removes them.
void send_names(int connection) {
    if (!base::is_best(&base::tiers::names))
        return;
    std::error_code error;
    const auto directory = base::open_directory(error);
    if (error)
        return;
    protocol::guard_message message;
    message.what = protocol::guarded::names;
    message.session = base::session();
    std::ignore = protocol::notify_guardian({connection, message}, directory.get());
}

/// Starts a guardian.
/// @param ours          is set to this process' end of the connection. When that is closed, a
///                      guardian without workers ends at once
/// @param longest, intermediate  see start_detached()
std::error_code launch(std::chrono::milliseconds longest, base::unique_fd& ours,
                       base::unique_fd& intermediate) {
    if (adopts_orphans() || !base::credentials::now().uniform())
        return std::make_error_code(std::errc::operation_not_permitted);
    std::error_code error;
    const auto file = base::make_program_memfd("cohort-guardian", error);
    if (!error)
        error = base::write_at(file.get(), std::as_bytes(std::span(program)), 0);
    if (error)
        return error;
    const auto self = base::open_pidfd(::getpid(), error);
    if (error)
        return error;
    base::unique_fd theirs;
    if ((error = base::make_socket_pair(ours, theirs)))
        return error;
    const int on = 1;  // each message carries its sender's user
    if (::setsockopt(theirs.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0)
        return base::last_error();
    return execute_program(self.get(), theirs.get(), file.get(), longest, intermediate);
}

/// Whether the intermediate process has ended, which it does at once, unless the machine is so busy
/// that it gets no CPU. Nobody's wait finds it then, because no worker has started yet.
bool has_ended_soon(int intermediate) noexcept {
    constexpr int longest_ms = 100;
    pollfd polled{intermediate, POLLIN, 0};
    return ::poll(&polled, 1, longest_ms) == 1;
}

}  // namespace

client::instance client::ensure_running(time_point now) {
    const std::lock_guard lock(mutex_);
    user_guardian& own = guardian_of_this_user();
    if (!own.accepts_messages())
        start_if_due(own, now);
    return own.current();
}

client::instance client::ensure_started(time_point now) {
    const std::lock_guard lock(mutex_);
    user_guardian& own = guardian_of_this_user();
    if (!own.connection)
        start_if_due(own, now);
    return own.current();
}

void client::start_if_due(user_guardian& own, time_point now) {
    if (now < own.not_before || !base::is_best(&base::tiers::guardian))
        return;
    // Workers are started without a guardian rather than not at all. If the next attempt may
    // succeed, also because this guardian was killed during its start, the next start tries again.
    const auto error = start(own);
    const bool may_succeed_now = base::is_shortage(error) ||
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

client::user_guardian& client::guardian_of_this_user() {
    const auto user = base::user_ids::now();
    const auto found = std::ranges::find(guardians_, user, &user_guardian::user);
    if (found != guardians_.end())
        return *found;
    return guardians_.emplace_back(
        user_guardian{.user = user, .connection = {}, .number = ++last_number_});
}

bool client::user_guardian::accepts_messages() const {
    pollfd polled{connection.get(), 0, 0};
    return connection && ::poll(&polled, 1, 0) <= 0;  // -1: a setuid in another thread interrupted
}

std::error_code client::start(user_guardian& own) {
    base::unique_fd ours;
    base::unique_fd intermediate;
    const auto error = launch(longest_start_, ours, intermediate);
    if (intermediate && has_ended_soon(intermediate.get()))
        base::reap_when_ended(intermediate.get());
    else if (intermediate)
        reap_(std::move(intermediate));
    if (error)
        return error;
    send_names(ours.get());
    return connect(own, std::move(ours));
}

std::error_code client::connect(user_guardian& own, base::unique_fd connection) {
    if (!own.connection)
        own.connection = std::move(connection);
    else if (::dup3(connection.get(), own.connection.get(), O_CLOEXEC) < 0)
        return base::last_error();
    own.number = ++last_number_;
    is_stuck_ = false;
    return {};
}

void client::resend(const protocol::guard_order& order, int descriptor) noexcept {
    constexpr int full_socket_wait_ms = 100;
    pollfd room{order.connection, POLLOUT, 0};
    if (!is_stuck_)
        ::poll(&room, 1, full_socket_wait_ms);
    is_stuck_ = !protocol::notify_guardian(order, descriptor);
    if (!is_stuck_)
        return;
    // If another guardian is started, its connection has the same number, see connect().
    try {
        ensure_running();
        is_stuck_ = !protocol::notify_guardian(order, descriptor);
    } catch (const std::exception&) {  // no memory
    }
}

base::tier_choice probe_guardian() {
    const auto& wanted = base::current_tiers().guardian;
    if (!wanted.best)
        return wanted;
    base::unique_fd ours;
    base::unique_fd intermediate;
    const auto error = launch(longest_helper_wait, ours, intermediate);
    if (intermediate)
        base::reap_when_ended(intermediate.get());
    return error ? base::tier_choice{false, "guardian: " + error.message()} : base::tier_choice{};
}

}  // namespace cohort::start
