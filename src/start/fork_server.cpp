// SPDX-License-Identifier: BSL-1.0
#include "start/fork_server.hpp"

#include "start/preloads.hpp"
#include "start/task.hpp"
#include "sys/descriptors.hpp"
#include "sys/memfd.hpp"
#include "sys/pidfd.hpp"
#include "sys/socket.hpp"
#include "sys/tiers.hpp"
#include "worker/mark.hpp"

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cohort::start {
namespace {

constexpr int connection_number = 60;  // in the server

std::error_code last_error() noexcept { return {errno, std::system_category()}; }

bool ended(int pidfd) noexcept {
    pollfd polled{pidfd, POLLIN, 0};
    return ::poll(&polled, 1, 0) != 0;
}

exec_result refused(int error) {
    exec_result result;
    result.failed = stage::clone;
    result.error = error;
    return result;
}

}  // namespace

void server_wait::give_up() noexcept {
    given_up_ = true;
    // fork_server keeps it open for longer than this takes.
    if (const int pidfd = pidfd_; pidfd >= 0)
        (void)!!sys::send_signal(pidfd, SIGKILL);
}

/// While it lives, another thread may end the server that this one waits for.
class fork_server::exposed {
public:
    exposed(server_wait& wait, int pidfd) noexcept : wait_(wait) { wait_.pidfd_ = pidfd; }
    exposed(const exposed&) = delete;
    exposed& operator=(const exposed&) = delete;
    ~exposed() { wait_.pidfd_ = -1; }
    /// Asked after the pidfd is there to be seen: give_up() misses neither of the two.
    bool in_vain() const noexcept { return wait_.given_up_; }

private:
    server_wait& wait_;
};

fork_server::fork_server(std::function<void(sys::unique_fd)> reap) : reap_(std::move(reap)) {}

fork_server::identity fork_server::identity::now() noexcept {
    identity self;
    ::getresuid(&self.users[0], &self.users[1], &self.users[2]);
    ::getresgid(&self.groups[0], &self.groups[1], &self.groups[2]);
    self.session = ::getsid(0);
    return self;
}

bool fork_server::alive() noexcept {
    return connection_ && !ended(pidfd_.get()) && started_as_ == identity::now();
}

std::optional<fork_server::failure> fork_server::ensure(const surroundings& where,
                                                        std::atomic<int>& pidfd_slot,
                                                        server_wait& wait) {
    const std::lock_guard lock(mutex_);
    const failure given_up{std::make_error_code(std::errc::operation_canceled), "fork server"};
    if (wait.given_up_)
        return given_up;
    if (alive())
        return std::nullopt;
    // A server of another user is still good for what it was asked before.
    while (connection_ && !asked_.empty())
        if (!hear(wait))
            return given_up;
    note_death();
    auto failed = start(where, pidfd_slot, wait);
    if (failed)
        note_death();
    return failed;
}

std::optional<fork_server::failure> fork_server::start(const surroundings& where,
                                                       std::atomic<int>& pidfd_slot,
                                                       server_wait& wait) {
    sys::unique_fd theirs;
    if (const auto error = sys::make_socket_pair(connection_, theirs))
        return failure{error, "socketpair for the fork server"};
    std::error_code error;
    const ino_t inode = sys::inode(theirs.get(), error);
    auto argument = worker::to_string({connection_number, inode, worker::mark::what::server});
    exec_order order;
    order.candidates = {"/proc/self/exe"};
    order.argv = {program_invocation_name, argument.data(), nullptr};
    // What a worker would bind at its first call, each worker anew, is bound once.
    char bind_now[] = "LD_BIND_NOW=1";
    order.envp = where.environment;
    order.envp.insert(order.envp.begin(), bind_now);
    order.directory_fd = where.directory_fd;
    order.descriptors = {{STDIN_FILENO, -1, "/dev/null", O_RDONLY},
                         {connection_number, theirs.get()}};
    order.affinity = where.affinity;
    order.affinity_size = where.affinity_size;
    order.parent_death_signal = SIGKILL;
    order.parent = where.parent;
    order.guard = where.guard;
    auto result = start_by_exec(order, pidfd_slot);
    pidfd_slot = -1;
    previous_pidfd_ = std::exchange(pidfd_, std::move(result.pidfd));
    ++generation_;
    sys::unique_fd copy;
    if (pidfd_)
        copy = sys::duplicate(pidfd_.get(), error);
    if (copy)
        reap_(std::move(copy));
    else if (pidfd_) {
        reap_(std::move(pidfd_));
        return failure{error, "a descriptor for the fork server"};
    }
    if (result.failed != stage::none)
        return failure{{result.error, std::system_category()},
                       std::string("fork server: ") + to_string(result.failed)};
    started_as_ = identity::now();
    theirs.reset();
    return introduce(wait);
}

std::optional<fork_server::failure> fork_server::introduce(server_wait& wait) {
    std::error_code error;
    const auto ledger = sys::make_memfd("cohort-ledger", error);
    if (!error && ::ftruncate(ledger.get(), sizeof *ledger_) != 0)
        error = last_error();
    void* page = MAP_FAILED;
    if (!error) {
        page =
            ::mmap(nullptr, sizeof *ledger_, PROT_READ | PROT_WRITE, MAP_SHARED, ledger.get(), 0);
        if (page == MAP_FAILED)
            error = last_error();
    }
    if (error)
        return failure{error, "memory shared with the fork server"};
    ledger_ = static_cast<server_ledger*>(page);
    last_told_ = 0;

    const auto& tiers = sys::current_tiers();
    const auto keys = preloads();
    const server_setup setup{{tiers.clone3.best, tiers.close_range.best},
                             static_cast<std::uint32_t>(keys.size())};
    std::vector<std::byte> message(sizeof setup + keys.size() * sizeof keys[0]);
    std::memcpy(message.data(), &setup, sizeof setup);
    std::memcpy(message.data() + sizeof setup, keys.data(), keys.size() * sizeof keys[0]);
    const int sent = ledger.get();
    const exposed waiting(wait, pidfd_.get());
    error = sys::send_message(connection_.get(), message, std::span(&sent, 1));
    if (waiting.in_vain())
        error = std::make_error_code(std::errc::operation_canceled);
    const char* text = "worker_main was not reached in the fork server: call it first in main";
    while (!error) {
        std::vector<sys::unique_fd> none;
        const auto answer = receive(none);
        if (!answer)
            return failure{std::make_error_code(std::errc::connection_reset), text};
        if (answer->kind == answer_kind::failed)
            return failure{std::make_error_code(std::errc::operation_canceled),
                           std::string("forkserver_preload: ") + answer->text};
        if (answer->kind == answer_kind::ready)
            return std::nullopt;
        text = "the fork server ended while it preloaded";
    }
    return failure{error, text};
}

/// The next word of the server's; empty when it has ended and all is told.
std::optional<server_answer> fork_server::receive(std::vector<sys::unique_fd>& descriptors) {
    for (;;) {
        server_answer answer;
        std::size_t length = 0;
        const bool was_ended = ended(pidfd_.get());  // asked first: it may speak until then
        const auto error =
            sys::receive_message(connection_.get(), std::as_writable_bytes(std::span(&answer, 1)),
                                 length, descriptors, sys::waiting::nonblock);
        // Without room for the pidfd there is still the number.
        if ((!error || error == std::errc::too_many_files_open) && length == sizeof answer)
            return answer;
        if (error == std::errc::connection_reset)
            continue;  // told once, when it died with unread requests; its answers come after that
        if (error != std::errc::resource_unavailable_try_again || was_ended)
            return std::nullopt;
        // A worker that was stopped in its first moment holds the server's end of the connection:
        // its end alone would not tell.
        pollfd either[] = {{connection_.get(), POLLIN, 0}, {pidfd_.get(), POLLIN, 0}};
        ::poll(either, 2, -1);
    }
}

/// Takes one answer in, or finds that there is no server any more. @return false: given up
bool fork_server::hear(server_wait& wait) {
    std::vector<sys::unique_fd> descriptors;
    const exposed waiting(wait, pidfd_.get());
    if (waiting.in_vain())
        return false;
    if (const auto answer = receive(descriptors))
        note_answer(*answer, std::move(descriptors));
    else
        note_death();
    return true;
}

std::error_code fork_server::ask(int book, fork_request order, std::span<const int> descriptors,
                                 ticket& asked, server_wait& wait) {
    const auto gone = std::make_error_code(std::errc::broken_pipe);
    std::vector<int> all{book};
    all.insert(all.end(), descriptors.begin(), descriptors.end());
    const std::lock_guard lock(mutex_);
    // Sockets of this kind hold ten messages (net.unix.max_dgram_qlen): no more are under way, in
    // either direction, so that the two never wait for each other.
    while (connection_ && asked_.size() >= most_under_way)
        if (!hear(wait))
            return std::make_error_code(std::errc::operation_canceled);
    if (!connection_)
        return gone;
    asked = {generation_, ++last_number_};
    const auto error =
        sys::send_message(connection_.get(), std::as_bytes(std::span(&order, 1)), all);
    if (error == std::errc::broken_pipe || error == std::errc::connection_reset) {
        // Its end of the connection goes a little before it is seen to have ended: to the last
        // answer, so that the next attempt finds no server.
        while (connection_)
            if (!hear(wait))
                return std::make_error_code(std::errc::operation_canceled);
        return gone;
    }
    if (!error)
        asked_.push_back(asked);
    return error;
}

std::optional<exec_result> fork_server::take(const ticket& asked, server_wait& wait) {
    const std::lock_guard lock(mutex_);
    for (;;) {
        if (auto found = answered_.extract(asked); !found.empty())
            return std::move(found.mapped());
        if (asked.server != generation_ || !connection_)
            return std::nullopt;
        if (!hear(wait)) {
            unwanted_.insert(asked);
            return refused(ECANCELED);
        }
    }
}

void fork_server::note_answer(const server_answer& answer,
                              std::vector<sys::unique_fd> descriptors) {
    if (asked_.empty())
        return;
    const auto asked = asked_.front();
    asked_.pop_front();
    if (answer.kind != answer_kind::forked) {
        if (unwanted_.erase(asked) == 0)
            answered_.emplace(asked, refused(answer.error));
        return;
    }
    last_told_ = answer.pid;
    std::error_code error;
    exec_result result;
    result.pid = answer.pid;
    result.pidfd =
        descriptors.empty() ? sys::open_pidfd(answer.pid, error) : std::move(descriptors.front());
    if (!result.pidfd) {
        ::kill(answer.pid, SIGKILL);  // ours, and not waited for yet
        sys::reap_by_number(answer.pid);
        result = refused(error.value());
    }
    if (result.pidfd && unwanted_.erase(asked) != 0) {
        (void)!!sys::send_signal(result.pidfd.get(), SIGKILL);
        reap_(std::move(result.pidfd));
        return;
    }
    answered_.emplace(asked, std::move(result));
}

/// After all that it has told: what it made last and could not tell is in the ledger.
void fork_server::note_death() {
    if (ledger_ != nullptr) {
        const pid_t forked = __atomic_load_n(&ledger_->forked, __ATOMIC_ACQUIRE);
        if (!asked_.empty() && forked != 0 && forked != last_told_)
            note_answer({answer_kind::forked, forked, 0, {}}, {});
        __atomic_store_n(&ledger_->released, UINT32_MAX, __ATOMIC_RELEASE);
        ::syscall(SYS_futex, &ledger_->released, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
        ::munmap(std::exchange(ledger_, nullptr), sizeof *ledger_);
    }
    asked_.clear();
    unwanted_.clear();
    connection_.reset();  // one that lives ends by this
}

}  // namespace cohort::start
