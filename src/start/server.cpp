// SPDX-License-Identifier: BSL-1.0
#include "start/server.hpp"

#include "start/clone.hpp"
#include "start/request.hpp"
#include "sys/futex.hpp"
#include "sys/pidfd.hpp"
#include "sys/socket.hpp"
#include "worker/exception.hpp"
#include "worker/marked.hpp"
#include "worker/registry.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace cohort::start {
namespace {

/// Enough for any setup: the functions that a program preloads are few.
constexpr std::size_t longest_message = 64 * 1024;

/// ThreadSanitizer has a thread of its own.
bool is_alone() {
    static const auto at_most = [] {
#if defined(__SANITIZE_THREAD__)
        return 2;
#else
        return 1;
#endif
    }();
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                         std::filesystem::directory_iterator()) <= at_most;
}

class server {
public:
    explicit server(int connection) : connection_(connection), buffer_(longest_message) {}

    /// @return false: there is nothing to serve
    bool set_up();
    [[noreturn]] void answer_requests();

private:
    bool receive(std::size_t at_least);
    bool try_to_tell(const server_answer& answer, std::span<const int> descriptors = {});
    void tell(const server_answer& answer);
    bool preload(std::span<const worker::function_key> keys);
    void fork_worker(const fork_request& request);
    void await_release();
    enum class born { in_leaf, outside };
    [[noreturn]] void run_worker(const fork_request& request, born where) noexcept;

    const int connection_;
    std::vector<std::byte> buffer_;
    std::size_t length_ = 0;
    std::vector<sys::unique_fd> received_;
    bool lacks_descriptors_ = false;
    start_tier tier_;
    server_ledger* ledger_ = nullptr;
    std::uint32_t forked_ = 0;
};

bool server::receive(std::size_t at_least) {
    const auto error =
        sys::receive_message(connection_, buffer_, length_, received_, sys::waiting::block);
    // A request is whole without its descriptors: it is refused by its number.
    lacks_descriptors_ = error == std::errc::too_many_files_open;
    return (!error || lacks_descriptors_) && length_ >= at_least;
}

bool server::try_to_tell(const server_answer& answer, std::span<const int> descriptors) {
    return !sys::send_message(connection_, std::as_bytes(std::span(&answer, 1)), descriptors);
}

void server::tell(const server_answer& answer) {
    if (!try_to_tell(answer))
        ::_exit(1);  // the application is gone, or finds what was not told in the ledger
}

bool server::set_up() {
    server_setup setup;
    if (!receive(sizeof setup) || received_.size() != 1)
        return false;
    std::memcpy(&setup, buffer_.data(), sizeof setup);
    std::vector<worker::function_key> keys(setup.preloads);
    if (length_ != sizeof setup + keys.size() * sizeof keys[0])
        return false;
    std::ranges::copy(std::span(buffer_).subspan(sizeof setup, length_ - sizeof setup),
                      std::as_writable_bytes(std::span(keys)).begin());
    tier_ = setup.tier;
    void* const page = ::mmap(nullptr, sizeof(server_ledger), PROT_READ | PROT_WRITE, MAP_SHARED,
                              received_[0].get(), 0);
    received_.clear();
    if (page == MAP_FAILED)
        return false;
    ledger_ = static_cast<server_ledger*>(page);
    ledger_->forked = 0;  // there before it is needed
    tell({answer_kind::reached, 0, 0, 0, {}});
    if (!preload(keys))
        return false;
    tell({answer_kind::ready, 0, 0, 0, {}});
    return true;
}

bool server::preload(std::span<const worker::function_key> keys) {
    try {
        if (!is_alone())
            throw std::runtime_error(
                "a thread runs before worker_main is reached, of which workers would have no copy");
        for (const auto& key : keys) {
            const auto* function = worker::find(key);
            if (function == nullptr)
                throw std::runtime_error("the function is not in the program");
            function->invoke(0, {});
        }
        if (!is_alone())
            throw std::runtime_error(
                "a thread was left running by forkserver_preload, of which workers would have no "
                "copy");
    } catch (...) {
        const auto error = worker::describe_current_exception();
        server_answer answer{answer_kind::failed, 0, 0, ECANCELED, {}};
        const auto text = "forkserver_preload: " + error.type + ": " + error.message;
        std::strncpy(answer.text, text.c_str(), sizeof answer.text - 1);
        tell(answer);
        return false;
    }
    // Workers must not write it too.
    std::fflush(nullptr);
    std::cout.flush();
    std::clog.flush();
    return true;
}

void server::answer_requests() {
    // A worker gets the application's own of these, as they are then; the server keeps nobody
    // waiting for the end of a pipe.
    const sys::unique_fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        ::dup2(null.get(), fd);
    (void)!::chdir("/");
    reset_dispositions();  // for all workers
    fork_request request;
    while (receive(sizeof request)) {
        std::memcpy(&request, buffer_.data(), sizeof request);
        fork_worker(request);
        received_.clear();
    }
    ::_exit(0);
}

void server::await_release() {
    for (std::uint32_t released = 0; (released = ledger_->released) < forked_;)
        sys::wait_on(ledger_->released, released);
}

void server::fork_worker(const fork_request& request) {
    const auto refuse = [&](int error, long pid = 0) {
        tell({answer_kind::refused, request.number, static_cast<std::int32_t>(pid), error, {}});
    };
    if (lacks_descriptors_)
        return refuse(EMFILE);
    int pidfd = -1;
    ++forked_;
    // The book comes first.
    const auto at = static_cast<std::size_t>(request.leaf) + 1;
    const int leaf = request.leaf >= 0 && at < received_.size() ? received_[at].get() : -1;
    const auto entry = tier_.clone3 ? clone_entry::clone3 : clone_entry::legacy;
    auto where = tier_.clone3 && leaf >= 0 ? born::in_leaf : born::outside;
    long pid = clone_sibling(entry, pidfd, ledger_->forked, leaf);
    if (pid < 0 && where == born::in_leaf) {
        where = born::outside;
        pid = clone_sibling(entry, pidfd, ledger_->forked);
    }
    if (pid == 0)
        run_worker(request, where);
    if (pid < 0) {
        --forked_;
        return refuse(static_cast<int>(-pid));
    }
    const sys::unique_fd owned(pidfd);
    if (!owned ||
        !try_to_tell({answer_kind::forked, request.number, static_cast<std::int32_t>(pid), 0, {}},
                     std::span(&pidfd, 1))) {
        // By its number alone the application could not hold it. It is not released yet, so the
        // number is its own.
        (void)!!(owned ? sys::send_signal(pidfd, SIGKILL)
                       : std::error_code(::kill(static_cast<pid_t>(pid), SIGKILL),
                                         std::system_category()));
        refuse(EMFILE, pid);
    }
    release(*ledger_, forked_);
}

/// An exception must not leave it: what would catch it is the application's.
void server::run_worker(const fork_request& request, born where) noexcept {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // until the user's choice is armed
    if (::getppid() != request.parent)
        ::_exit(127);
    std::vector<std::byte> text(request.length);
    const int book = received_.empty() ? -1 : received_[0].get();
    if (::pread(book, text.data(), text.size(), static_cast<off_t>(request.offset)) !=
        static_cast<ssize_t>(text.size()))
        ::_exit(127);
    std::vector<int> descriptors;
    for (std::size_t i = 1; i < received_.size(); ++i)
        descriptors.push_back(received_[i].get());
    unpacked_order unpacked;
    unpack(text, descriptors, unpacked);
    if (where == born::in_leaf)
        unpacked.order.leaf = -1;
    await_release();
    for (const int fd : unpacked.closed)
        ::close(fd);
    if (unpacked.process_group != 0)
        ::setpgid(0, unpacked.process_group);
    const worker::mark control{unpacked.channel.record, unpacked.record_inode};
    run_copy(unpacked.order, unpacked.channel, tier_, [control] { worker::run_marked(control); });
}

}  // namespace

void serve(const worker::mark& connection) noexcept {
    ::unsetenv("LD_BIND_NOW");  // it was for this program, not for those that a preload may run
    server self(connection.fd);
    if (!self.set_up())
        ::_exit(1);
    self.answer_requests();
}

}  // namespace cohort::start
