// SPDX-License-Identifier: BSL-1.0
#include "start/forkserver/forkserver_client.hpp"

#include "base/files/carrier.hpp"
#include "base/sys/descriptors.hpp"
#include "base/sys/memfd.hpp"
#include "base/sys/processes.hpp"
#include "base/sys/socket.hpp"
#include "base/sys/tiers.hpp"
#include "protocol/registry/registry.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

namespace cohort::start {

void release(shared_progress& progress, std::uint32_t children) noexcept {
    std::uint32_t before = progress.released;
    while (before < children && !progress.released.compare_exchange_weak(before, children)) {
    }
    if (before < children)
        base::wake(progress.released);
}

namespace {

using std::chrono::milliseconds;

/// How long a server may keep a start that was given up.
constexpr milliseconds given_up_timeout{500};
constexpr milliseconds longest_poll{INT_MAX};

}  // namespace

std::error_code forkserver_wait::open() {
    std::error_code error;
    if (event_)
        return error;
    const std::lock_guard lock(mutex_);
    event_ = base::make_eventfd(error);
    if (held_)
        ring();  // hold() was called before there was an event
    return error;
}

void forkserver_wait::close() noexcept {
    const std::lock_guard lock(mutex_);
    event_.reset();
}

void forkserver_wait::ring() noexcept {
    if (event_)
        base::raise_event(event_.get());
}

void forkserver_wait::drain() noexcept { base::drain_event(event_.get()); }

void forkserver_wait::hold() noexcept {
    const std::lock_guard lock(mutex_);
    held_ = true;
    ring();
}

void forkserver_wait::give_up() noexcept {
    const std::lock_guard lock(mutex_);
    given_up_ = true;
    ring();
}

int forkserver_wait::patience() const noexcept {
    if (!given_up_ && !give_up_at_)
        return -1;
    milliseconds left{0};
    if (const auto now = std::chrono::steady_clock::now(); !given_up_ && *give_up_at_ > now)
        left = std::chrono::ceil<milliseconds>(*give_up_at_ - now);
    if (left <= milliseconds(0))
        left = given_up_timeout;
    return static_cast<int>(std::min(left, longest_poll).count());
}

namespace {

/// The pause between two attempts to receive a message, when there was no memory for it.
constexpr int shortage_pause_ms = 10;

start::exec_result refused(int error) {
    start::exec_result result;
    result.failed = start::stage::clone;
    result.error = error;
    return result;
}

shared_progress* map_progress(const base::unique_fd& file, std::error_code& error) {
    error = base::set_length(file.get(), sizeof(shared_progress));
    if (error)
        return nullptr;
    void* const page =
        ::mmap(nullptr, sizeof(shared_progress), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (page != MAP_FAILED)
        return new (page) shared_progress;
    error = base::last_error();
    return nullptr;
}

std::vector<std::byte> setup_message() {
    const auto keys = protocol::preloads();
    const server_setup setup{best_start_tier(),
                             static_cast<std::uint32_t>(keys.size())};
    const auto head = std::as_bytes(std::span(&setup, 1));
    const auto tail = std::as_bytes(std::span(keys));
    std::vector<std::byte> message(head.begin(), head.end());
    message.insert(message.end(), tail.begin(), tail.end());
    return message;
}

/// A pidfd of a child of this process, if the server could not send one. If the child is gone and
/// reaped already, it ended before it was released: EINTR, which means that it ended in its start.
base::unique_fd child_by_number(pid_t pid, std::error_code& error) {
    auto pidfd = base::open_pidfd(pid, error);
    if (pidfd && base::state_of_child(pidfd.get()) == base::child_state::not_ours)
        pidfd.reset();  // the number means another process
    if (!pidfd && (!error || error == std::errc::no_such_process))
        error = std::make_error_code(std::errc::interrupted);
    return pidfd;
}

}  // namespace

forkserver_client::forkserver_client(base::unique_fd connection, base::unique_fd pidfd,
                                     std::chrono::milliseconds longest_stop) noexcept
    : connection_(std::move(connection)), pidfd_(std::move(pidfd)), longest_stop_(longest_stop) {}

forkserver_client::~forkserver_client() {
    if (::getpid() == owner_)
        kill();
    if (progress_ != nullptr)
        ::munmap(progress_, sizeof *progress_);
}

void forkserver_client::kill() const noexcept { (void)!!base::send_signal(pidfd_.get(), SIGKILL); }

bool forkserver_client::is_alive() const noexcept {
    return !base::is_readable(pidfd_.get());  // an error: interrupted by setuid in another thread
}

bool forkserver_client::is_usable() {
    const std::lock_guard lock(mutex_);
    return state_ < state::failed && is_alive();
}

std::error_code forkserver_client::introduce() {
    std::error_code error;
    const auto file = base::make_memfd("cohort-progress", error);
    if (!error)
        progress_ = map_progress(file, error);
    if (!error)  // without the seals the file could shrink, and access to it would raise SIGBUS
        error = base::add_seals(file.get(), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    const int sent = file.get();
    return error ? error
                 : base::send_message(connection_.get(), setup_message(), std::span(&sent, 1));
}

std::optional<server_failure> forkserver_client::await_ready(forkserver_wait& wait) {
    const bool over = await(wait, until::done_or_held, [this] { return state_ >= state::ready; });
    const std::lock_guard lock(mutex_);
    if (!over)
        return server_failure{std::make_error_code(std::errc::operation_canceled), "fork server"};
    if (failure_.code)
        return failure_;
    return std::nullopt;  // if the server has died since, the next request fails
}

std::error_code forkserver_client::ask(int order_file, fork_request order,
                                       std::span<const int> descriptors, std::uint64_t& number,
                                       forkserver_wait& wait) {
    std::vector<int> all{order_file};
    all.insert(all.end(), descriptors.begin(), descriptors.end());
    base::unique_fd carrier;
    if (all.size() > base::most_descriptors) {
        const auto rest = std::span(all).subspan(base::most_descriptors - 1);
        std::error_code error;
        carrier = base::pack(rest, error);
        if (error)
            return error;
        order.packed = rest.size();
        all.resize(base::most_descriptors - 1);
        all.push_back(carrier.get());
    }
    // The connection holds a bounded number of messages in either direction. Up to this many
    // requests under way fit, so that the two processes never wait for each other.
    std::size_t most = most_under_way;
    for (;;) {
        await(wait, until::done,
              [this, most] { return state_ == state::dead || asked_.size() < most; });
        const std::lock_guard lock(mutex_);
        if (state_ == state::dead)
            return std::make_error_code(std::errc::broken_pipe);
        if (asked_.size() >= most)
            continue;  // another start has taken the place
        order.number = last_number_ + 1;
        // Without a wait, because the lock is held and a server that is stopped reads nothing.
        const auto error =
            base::send_parts(connection_.get(), std::as_bytes(std::span(&order, 1)), {}, all);
        if (error == std::errc::broken_pipe || error == std::errc::connection_reset) {
            kill();  // it is ending anyway; await() receives what it has sent
            continue;
        }
        // The socket is full, or the user has too many descriptors in flight: let some arrive.
        if ((error.value() == EAGAIN || error.value() == ETOOMANYREFS) && !asked_.empty()) {
            most = asked_.size();
            continue;
        }
        if (!error)
            asked_.push_back(number = ++last_number_);
        return error;
    }
}

std::optional<start::exec_result> forkserver_client::take(std::uint64_t number,
                                                          forkserver_wait& wait) {
    await(wait, until::done,
          [this, number] { return state_ == state::dead || answered_.contains(number); });
    const std::lock_guard lock(mutex_);
    auto found = answered_.extract(number);
    if (found.empty())
        return std::nullopt;
    return std::move(found.mapped());
}

/// Waits until `done` returns true, or, if `end` says so, until the start is held.
/// @param done  called under the lock
/// @return false: the start is held
bool forkserver_client::await(forkserver_wait& wait, until end, const std::function<bool()>& done) {
    std::unique_lock lock(mutex_);
    waiting_.insert(&wait);
    bool was_stopped = false;
    for (int kills = 0;;) {
        hear_all(wait);
        if (kills > 1 && state_ != state::dead) {  // SIGKILL did not end it: it hangs in its exit
            note_death();
            ring_others(wait);
        }
        const bool over = done();
        if (over || (end == until::done_or_held && wait.is_held())) {
            waiting_.erase(&wait);
            return over;
        }
        lock.unlock();
        // The pidfd is polled too, because the end of the connection may not come: a worker that
        // was stopped in its first moment holds the server's end open.
        pollfd any[] = {
            {wait.event(), POLLIN, 0}, {connection_.get(), POLLIN, 0}, {pidfd_.get(), POLLIN, 0}};
        const int patience = wait.patience();
        const auto longest_stop = static_cast<int>(longest_stop_.count());
        const bool only_looks = patience < 0 || patience > longest_stop;
        const int heard = ::poll(any, 3, only_looks ? longest_stop : patience);
        if (heard == 0 && only_looks) {
            kill_stopped(was_stopped);
        } else if (heard == 0) {
            kill();
            ++kills;
        }
        if (any[0].revents != 0)
            wait.drain();
        lock.lock();
    }
}

/// Kills a server that was stopped at the last look too. What the user's code does in the server
/// may take any time, but one that is stopped does nothing. The first look does not count: if this
/// process was stopped with the server, it may be the first one to go on.
void forkserver_client::kill_stopped(bool& was_stopped) {
    if (!std::exchange(was_stopped, base::is_stopped(pidfd_.get())) || !was_stopped)
        return;
    const std::lock_guard lock(mutex_);
    if (state_ <= state::reached)
        failure_ = {std::make_error_code(std::errc::timed_out), "the fork server was stopped"};
    kill();
}

/// Receives all messages that are there, and wakes the other starts that wait for some of them.
void forkserver_client::hear_all(const forkserver_wait& own) {
    bool heard = false;
    while (hear())
        heard = true;
    if (heard)
        ring_others(own);
}

void forkserver_client::ring_others(const forkserver_wait& own) {
    for (auto* other : waiting_)
        if (other != &own)
            other->ring();
}

/// Receives one message, or the end of the server. @return false: there is nothing new
bool forkserver_client::hear() {
    if (state_ >= state::failed)
        return false;
    const bool was_alive = is_alive();  // before reading, else its last message is lost
    server_answer answer;
    std::size_t length = 0;
    std::vector<base::unique_fd> descriptors;
    const auto error =
        base::receive_message(connection_.get(), std::as_writable_bytes(std::span(&answer, 1)),
                              length, descriptors, base::waiting::nonblock);
    // A message whose pidfd found no free descriptor still has the pid.
    if ((!error || error == std::errc::too_many_files_open) && length == sizeof answer)
        note(answer, std::move(descriptors));
    else if (error == std::errc::resource_unavailable_try_again && was_alive)
        return false;
    else if (error == std::errc::not_enough_memory || error == std::errc::no_buffer_space)
        ::poll(nullptr, 0, shortage_pause_ms);
    else if (error != std::errc::connection_reset)  // comes once, before the last messages
        note_death();
    return true;
}

void forkserver_client::note(const server_answer& answer,
                             std::vector<base::unique_fd> descriptors) {
    switch (answer.kind) {
    case answer_kind::reached:
        state_ = state::reached;
        break;
    case answer_kind::ready:
        state_ = state::ready;
        break;
    case answer_kind::failed:
        state_ = state::failed;
        failure_.code = {answer.error != 0 ? answer.error : ECANCELED, std::system_category()};
        failure_.text.assign(answer.text, ::strnlen(answer.text, sizeof answer.text));
        break;
    case answer_kind::forked:
    case answer_kind::refused:
        note_worker(answer, std::move(descriptors));
        break;
    }
}

void forkserver_client::note_worker(const server_answer& answer,
                                    std::vector<base::unique_fd> descriptors) {
    if (asked_.empty() || asked_.front() != answer.number)
        return kill();  // the two disagree on the number; the server's workers live on
    asked_.pop_front();
    if (answer.pid != 0) {
        last_reported_ = answer.pid;
        ++reported_;
    }
    start::exec_result result = refused(answer.error);
    if (answer.kind == answer_kind::refused && answer.pid != 0)
        base::reap_by_number(answer.pid);  // the server has killed it
    if (answer.kind == answer_kind::forked) {
        std::error_code error;
        auto pidfd = descriptors.empty() ? child_by_number(answer.pid, error)
                                         : std::move(descriptors.front());
        result = start::exec_result();
        result.pid = answer.pid;
        result.pidfd = std::move(pidfd);
        if (!result.pidfd) {
            if (base::is_child(answer.pid))
                ::kill(answer.pid, SIGKILL);
            base::reap_by_number(answer.pid);
            result = refused(error.value());
        }
    }
    answered_.emplace(answer.number, std::move(result));
    release(*progress_, reported_);
}

/// Called after all messages of the server. A child that it made last and could not report is in
/// the shared progress.
void forkserver_client::note_death() {
    kill();  // the connection may end a little before the server does
    if (state_ <= state::reached && !failure_.code)
        failure_ = {std::make_error_code(std::errc::connection_reset),
                    state_ == state::reached
                        ? "the fork server ended before it was ready"
                        : "worker_main was not reached in the fork server: call it first in main"};
    const pid_t forked = __atomic_load_n(&progress_->forked, __ATOMIC_ACQUIRE);
    if (!asked_.empty() && forked != 0 && forked != last_reported_)
        note_worker({answer_kind::forked, asked_.front(), forked, 0, {}}, {});
    release(*progress_, UINT32_MAX);
    asked_.clear();
    state_ = state::dead;
}

}  // namespace cohort::start
