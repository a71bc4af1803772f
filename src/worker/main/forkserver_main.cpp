// SPDX-License-Identifier: BSL-1.0
#include "worker/main/forkserver_main.hpp"

#include "base/files/carrier.hpp"
#include "base/sys/descriptors.hpp"
#include "base/sys/memfd.hpp"
#include "base/sys/processes.hpp"
#include "base/sys/socket.hpp"
#include "base/sys/threads.hpp"
#include "protocol/registry/exception.hpp"
#include "protocol/registry/registry.hpp"
#include "start/copies/copies.hpp"
#include "start/exec/clone.hpp"
#include "start/forkserver/forkserver_client.hpp"
#include "worker/main/worker_main.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace cohort::worker {
namespace {

/// Enough for any setup message, because a program preloads few functions.
constexpr std::size_t longest_message = 64 * 1024;

/// ThreadSanitizer has a thread of its own.
#if defined(__SANITIZE_THREAD__)
constexpr int own_threads = 2;
#else
constexpr int own_threads = 1;
#endif
constexpr auto threads_directory = "/proc/self/task";

bool is_alone(std::error_code& error) {
    int threads = 0;
    std::filesystem::directory_iterator thread(threads_directory, error);
    for (; !error && thread != std::filesystem::directory_iterator(); thread.increment(error))
        ++threads;
    return threads <= own_threads;
}

class server {
public:
    explicit server(int connection) : connection_(connection), buffer_(longest_message) {}

    /// @return false: there is no server, and nothing to serve
    bool set_up();
    [[noreturn]] void answer_requests();

private:
    std::error_code receive();
    bool receive(std::size_t at_least);
    std::error_code try_to_send(const start::server_answer& answer,
                                std::span<const int> descriptors = {});
    void send(const start::server_answer& answer);
    bool fail(std::error_code error, const std::string& text);
    bool preload(std::span<const protocol::function_key> keys);
    bool is_one_thread(const char* when);
    void fork_worker(const start::fork_request& request);
    void await_release();
    enum class born { in_cgroup, outside };
    [[noreturn]] void run_worker(const start::fork_request& request, born where) noexcept;

    const int connection_;
    std::vector<std::byte> buffer_;
    std::size_t length_ = 0;
    std::vector<base::unique_fd> received_;
    bool lacks_descriptors_ = false;
    start::start_tier tier_;
    start::shared_progress* progress_ = nullptr;
    std::uint32_t forked_ = 0;
};

std::error_code server::receive() {
    return base::receive_message(connection_, buffer_, length_, received_, base::waiting::block);
}

bool server::receive(std::size_t at_least) {
    const auto error = receive();
    // A request that has lost descriptors is otherwise whole, so it can be refused by its number.
    lacks_descriptors_ = error == std::errc::too_many_files_open;
    return (!error || lacks_descriptors_) && length_ >= at_least;
}

std::error_code server::try_to_send(const start::server_answer& answer,
                                    std::span<const int> descriptors) {
    return base::send_message(connection_, std::as_bytes(std::span(&answer, 1)), descriptors);
}

void server::send(const start::server_answer& answer) {
    if (try_to_send(answer))
        ::_exit(1);  // the application is gone, or the shared progress says what this would
}

/// Reports why there is no server. @return false
bool server::fail(std::error_code error, const std::string& text) {
    start::server_answer answer{start::answer_kind::failed, 0, 0, error.value(), {}};
    std::strncpy(answer.text, text.c_str(), sizeof answer.text - 1);
    send(answer);
    return false;
}

bool server::set_up() {
    // Sent first, because a failure after it is not the fault of the program's main.
    if (const auto error = try_to_send({start::answer_kind::reached, 0, 0, 0, {}}))
        return fail(error, "fork server: sendmsg");
    start::server_setup setup;
    if (const auto error = receive())
        return fail(error, "fork server: recvmsg");
    if (length_ < sizeof setup || received_.size() != 1)
        return false;  // the application is gone
    std::memcpy(&setup, buffer_.data(), sizeof setup);
    std::vector<protocol::function_key> keys(setup.preloads);
    if (length_ != sizeof setup + keys.size() * sizeof keys[0])
        return false;
    std::ranges::copy(std::span(buffer_).subspan(sizeof setup, length_ - sizeof setup),
                      std::as_writable_bytes(std::span(keys)).begin());
    tier_ = setup.tier;
    void* const page = ::mmap(nullptr, sizeof(start::shared_progress), PROT_READ | PROT_WRITE,
                              MAP_SHARED, received_[0].get(), 0);
    if (page == MAP_FAILED)
        return fail(base::last_error(), "fork server: mmap of the memory shared with it");
    received_.clear();
    progress_ = static_cast<start::shared_progress*>(page);
    progress_->forked = 0;  // so that the page is there before it is needed
    if (!is_one_thread("runs before worker_main is reached") || !preload(keys) ||
        !is_one_thread("was left running by forkserver_preload"))
        return false;
    // Buffered output is written now, because workers would write their copies of it too.
    std::fflush(nullptr);
    std::cout.flush();
    std::clog.flush();
    send({start::answer_kind::ready, 0, 0, 0, {}});
    return true;
}

/// Calls fail() if there is a second thread. @param when  says when that thread ran
bool server::is_one_thread(const char* when) {
    std::error_code error;
    const bool alone = is_alone(error);
    if (error)
        return fail(error,
                    std::string("fork server: the list of its threads, ") + threads_directory);
    if (!alone)
        return fail(std::make_error_code(std::errc::operation_canceled),
                    std::string("fork server: a thread ") + when +
                        ": fork(2) copies only the thread that calls it");
    return true;
}

bool server::preload(std::span<const protocol::function_key> keys) {
    try {
        for (const auto& key : keys) {
            const auto* function = protocol::find(key);
            if (function == nullptr)
                throw std::runtime_error("a function to preload is not registered in this program");
            function->invoke(0, {}, {});
        }
        return true;
    } catch (...) {
        const auto error = protocol::describe_current_exception();
        return fail(std::make_error_code(std::errc::operation_canceled),
                    "forkserver_preload: " + error.type + ": " + error.message);
    }
}

void server::answer_requests() {
    // The server closes its standard streams, because it would keep the end of a pipe open on which
    // somebody waits. A worker gets the application's streams as they are when it is started.
    const base::unique_fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        ::dup2(null.get(), fd);
    (void)!::chdir("/");
    start::reset_dispositions();  // all workers inherit them
    start::fork_request request;
    while (receive(sizeof request)) {
        std::memcpy(&request, buffer_.data(), sizeof request);
        if (request.packed > 0 && !received_.empty()) {
            const base::unique_fd carrier = std::move(received_.back());
            received_.pop_back();
            lacks_descriptors_ |= bool(base::unpack(carrier.get(), request.packed, received_));
        }
        fork_worker(request);
        received_.clear();
    }
    ::_exit(0);
}

void server::await_release() {
    for (std::uint32_t released = 0; (released = progress_->released) < forked_;)
        base::wait_on(progress_->released, released);
}

void server::fork_worker(const start::fork_request& request) {
    const auto refuse = [&](int error, long pid = 0) {
        send({start::answer_kind::refused,
              request.number,
              static_cast<std::int32_t>(pid),
              error,
              {}});
    };
    if (lacks_descriptors_)
        return refuse(EMFILE);
    int pidfd = -1;
    ++forked_;
    // received_[0] is the order file, so slot n is received_[n + 1].
    const auto at = static_cast<std::size_t>(request.cgroup) + 1;
    const int cgroup = request.cgroup >= 0 && at < received_.size() ? received_[at].get() : -1;
    const auto entry = tier_.clone3 ? start::clone_entry::clone3 : start::clone_entry::legacy;
    auto where = tier_.clone3 && cgroup >= 0 ? born::in_cgroup : born::outside;
    long pid = start::clone_sibling(entry, pidfd, progress_->forked, cgroup);
    if (pid < 0 && where == born::in_cgroup) {
        where = born::outside;
        pid = start::clone_sibling(entry, pidfd, progress_->forked);
    }
    if (pid == 0)
        run_worker(request, where);
    if (pid < 0) {
        --forked_;
        return refuse(static_cast<int>(-pid));
    }
    const base::unique_fd owned(pidfd);
    if (!owned ||
        try_to_send(
            {start::answer_kind::forked, request.number, static_cast<std::int32_t>(pid), 0, {}},
            std::span(&pidfd, 1))) {
        // Without a pidfd the application could not hold the worker, so it is killed. It is not
        // released yet, so its number cannot belong to another process.
        (void)!!(owned ? base::send_signal(pidfd, SIGKILL)
                       : std::error_code(::kill(static_cast<pid_t>(pid), SIGKILL),
                                         std::system_category()));
        refuse(EMFILE, pid);
    }
    start::release(*progress_, forked_);
}

/// noexcept, because a handler of the program's main would catch an exception that leaves it.
void server::run_worker(const start::fork_request& request, born where) noexcept {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // until the signal of the user's choice is armed
    if (::getppid() != request.parent)
        ::_exit(127);
    if (request.length < sizeof(protocol::worker_order))
        ::_exit(127);
    protocol::order_block order(request.length);
    const auto bytes = order.bytes().first(request.length);
    const int order_file = received_.empty() ? -1 : received_[0].get();
    std::error_code error;
    if (base::read_at(order_file, bytes, static_cast<off_t>(request.offset), error) != bytes.size())
        ::_exit(127);
    std::vector<int> descriptors;
    for (std::size_t i = 1; i < received_.size(); ++i)
        descriptors.push_back(received_[i].get());
    protocol::take_over(order, descriptors);
    if (where == born::in_cgroup)
        order->cgroup = -1;
    await_release();
    ::munmap(progress_, sizeof *progress_);  // user code could write to it
    const protocol::mark control{order->channel.record, static_cast<ino_t>(order->record_inode)};
    start::run_copy(order, tier_, [control] { worker::run_worker(control); });
}

}  // namespace

void serve(const protocol::mark& connection) noexcept {
    // exec may have cleared the parent-death signal (AT_SECURE). If the parent is already gone, its
    // end of the connection is closed.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::unsetenv("LD_BIND_NOW");  // meant for this program, not for programs that a preload runs
    server self(connection.fd);
    if (!self.set_up())
        ::_exit(1);
    self.answer_requests();
}

}  // namespace cohort::worker
