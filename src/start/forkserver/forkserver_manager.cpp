// SPDX-License-Identifier: BSL-1.0
#include "start/forkserver/forkserver_manager.hpp"

#include "base/sys/credentials.hpp"
#include "base/sys/descriptors.hpp"
#include "base/sys/memfd.hpp"
#include "base/sys/socket.hpp"
#include "base/sys/tiers.hpp"
#include "protocol/order/order_writer.hpp"
#include "protocol/registry/mark.hpp"
#include "start/exec/exec.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace cohort::start {
namespace {

/// The number of the connection in the server: high, so that it takes none that a preload may
/// expect to be free.
int connection_number() noexcept {
    constexpr std::uint64_t usual = 60;
    return static_cast<int>(std::min(usual, base::descriptor_limit() - 1));
}

}  // namespace

forkserver_manager::identity forkserver_manager::identity::now() {
    return {protocol::thread_state::now(), base::own_filters(), ::getsid(0)};
}

bool forkserver_manager::serves() const {
    return current_ && current_->is_usable() && started_as_ == identity::now();
}

/// The right to start a server. One start has it at a time; the others wait for the result.
class forkserver_manager::turn {
public:
    turn(forkserver_manager& of, std::unique_lock<std::mutex>& lock) : of_(of), lock_(lock) {
        of_.starting_ = true;
        lock_.unlock();
    }
    turn(const turn&) = delete;
    turn& operator=(const turn&) = delete;
    ~turn() {
        lock_.lock();
        of_.starting_ = false;
        for (auto* other : of_.waiting_)
            other->ring();
    }

private:
    forkserver_manager& of_;
    std::unique_lock<std::mutex>& lock_;
};

std::optional<server_failure> forkserver_manager::ensure(
    const surroundings& where, std::atomic<int>& pidfd_slot, forkserver_wait& wait,
    std::shared_ptr<forkserver_client>& server) {
    if (const auto error = wait.open())
        return server_failure{error, "eventfd"};
    std::unique_lock lock(mutex_);
    for (;;) {
        // Checked even if a server serves, because a start that is given up kills the server that
        // it waits for, and the next start may use that one.
        if (wait.is_held())
            return server_failure{std::make_error_code(std::errc::operation_canceled),
                                  "fork server"};
        if (!starting_ && serves())
            break;
        if (!starting_) {
            const turn own(*this, lock);
            if (auto failed = start(where, pidfd_slot))
                return failed;
            break;
        }
        waiting_.insert(&wait);
        lock.unlock();
        pollfd event{wait.event(), POLLIN, 0};
        ::poll(&event, 1, -1);
        wait.drain();
        lock.lock();
        waiting_.erase(&wait);
    }
    server = current_;
    lock.unlock();
    return server->await_ready(wait);
}

/// Starts a server. The old one, which no longer serves, is left to the starts that wait for its
/// answers.
std::optional<server_failure> forkserver_manager::start(const surroundings& where,
                                                        std::atomic<int>& pidfd_slot) {
    current_.reset();
    base::unique_fd ours;
    base::unique_fd theirs;
    if (const auto error = base::make_socket_pair(ours, theirs))
        return server_failure{error, "socketpair for the fork server"};
    const int number = connection_number();
    std::error_code error;
    const ino_t inode = base::inode(theirs.get(), error);
    const auto argument = protocol::to_string({number, inode, protocol::mark::what::server});
    protocol::order_writer order;
    order.add_candidate("/proc/self/exe");
    order.add_argument(program_invocation_name);
    order.add_argument(argument);
    // The server binds all symbols once; else each worker would bind them again at its first calls.
    order.add_variable("LD_BIND_NOW=1");
    for (const char* entry : where.environment.entries())
        order.add_variable(entry);
    order.head.directory = order.add_descriptor(where.from.directory.get());
    order.open(STDIN_FILENO, "/dev/null", O_RDONLY);
    order.place(number, theirs.get());
    order.set_affinity(where.from.affinity);
    order.head.parent_death_signal = SIGKILL;
    order.head.parent = where.from.pid;
    order.set_guard(where.guard);
    order.head.itself = start::executing_itself(number, theirs.get());
    auto block = order.finish();
    std::optional<base::user_hold> as_the_server(std::in_place);
    started_as_ = identity::now();
    auto made =
        start::start_by_exec(block, pidfd_slot, start::best_start_tier(), longest_wait_);
    as_the_server.reset();
    pidfd_slot = -1;
    return take_in(std::move(made), std::move(ours));
}

std::optional<server_failure> forkserver_manager::take_in(start::exec_result made,
                                                          base::unique_fd connection) {
    if (made.first_child)
        reap_(std::move(made.first_child), 0);
    std::error_code error;
    auto own = made.pidfd ? base::duplicate(made.pidfd.get(), error) : base::unique_fd();
    if (made.pidfd)
        reap_(std::move(made.pidfd), made.pid);
    if (made.failed != start::stage::none)
        return server_failure{{made.error, std::system_category()},
                              "fork server: " + start::attempted(made.failed)};
    // Without a descriptor for the server's pidfd, close the connection, which ends the server.
    if (!own)
        return server_failure{error, "a descriptor for the fork server"};
    auto server =
        std::make_shared<forkserver_client>(std::move(connection), std::move(own), longest_wait_);
    if ((error = server->introduce()))
        return server_failure{error, "memory shared with the fork server"};
    current_ = std::move(server);
    return std::nullopt;
}

}  // namespace cohort::start
