// SPDX-License-Identifier: BSL-1.0
#include "start/guardian.hpp"

#include "start/detached.hpp"
#include "sys/memfd.hpp"
#include "sys/pidfd.hpp"
#include "sys/socket.hpp"
#include "sys/tiers.hpp"

#include <cerrno>
#include <span>
#include <utility>

#include <fcntl.h>
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

std::error_code last_error() noexcept { return {errno, std::system_category()}; }

std::error_code execute(int parent, int connection, int file, sys::unique_fd& between) {
    exec_order order;
    char name[] = "cohort-guardian";
    order.candidates = {"/proc/self/fd/5"};
    static_assert(guardian_program == 5);
    order.argv = {name, nullptr};
    order.envp = {nullptr};
    order.working_directory = "/";
    order.descriptors = {
        {STDIN_FILENO, -1, "/dev/null", O_RDWR},  {STDOUT_FILENO, -1, "/dev/null", O_RDWR},
        {STDERR_FILENO, -1, "/dev/null", O_RDWR}, {guardian_parent, parent},
        {guardian_connection, connection},        {guardian_program, file}};
    order.own_session = true;
    const sys::tiers& tiers = sys::current_tiers();
    const auto made = start_detached(order, {tiers.clone3.best, tiers.close_range.best}, between);
    return made.failed == stage::none ? std::error_code{}
                                      : std::error_code{made.error, std::system_category()};
}

}  // namespace

void guardian::ensure() {
    const std::lock_guard lock(mutex_);
    if (in_vain_ || !sys::current_tiers().guardian.best || (connection_ && lost_ == 0))
        return;
    // Out of descriptors or memory, say: workers are started without one rather than not at all.
    if (const auto error = start())
        in_vain_ = error != std::errc::too_many_files_open && error != std::errc::not_enough_memory;
    else
        lost_ = 0;
}

std::error_code guardian::start() {
    std::error_code error;
    const auto file = sys::make_program_memfd("cohort-guardian", error);
    if (!error)
        error = sys::write_at(file.get(), std::as_bytes(std::span(program)), 0);
    if (error)
        return error;
    const auto self = sys::open_pidfd(::getpid(), error);
    if (error)
        return error;
    sys::unique_fd ours;
    sys::unique_fd theirs;
    if ((error = sys::make_socket_pair(ours, theirs)))
        return error;
    const int on = 1;  // each word says whose it is
    if (::setsockopt(theirs.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0)
        return last_error();
    sys::unique_fd between;
    error = execute(self.get(), theirs.get(), file.get(), between);
    if (between)
        reap_(std::move(between));
    return error ? error : connect(std::move(ours));
}

std::error_code guardian::connect(sys::unique_fd fresh) {
    if (!connection_)
        connection_ = std::move(fresh);
    else if (::dup3(fresh.get(), connection_.get(), O_CLOEXEC) < 0)
        return last_error();
    return {};
}

guard_order guardian::order(guard_word word) noexcept {
    const std::lock_guard lock(mutex_);
    return {connection_ ? connection_.get() : -1, word, &lost_};
}

}  // namespace cohort::start
