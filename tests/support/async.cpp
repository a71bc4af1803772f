// SPDX-License-Identifier: BSL-1.0
#include "async.hpp"

#include "procfs.hpp"
#include "reporter.hpp"

#include <asio/buffer.hpp>
#include <asio/co_spawn.hpp>
#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace cohort_test {

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int slowness = 4;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr int slowness = 4;
#else
constexpr int slowness = 1;
#endif
#else
constexpr int slowness = 1;
#endif

[[noreturn]] void end_hanging_program() {
    std::fprintf(stderr, "\n[watchdog] the case \"%s\" hangs\n%s", current_case().c_str(),
                 describe_this_process().c_str());
    std::fflush(stderr);
    ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    const auto stacks = "timeout -s KILL 60 gdb -nx -batch -p " + std::to_string(::getpid()) +
                        " -ex 'thread apply all backtrace 16' 2>/dev/null"
                        " | grep -E '^(Thread|#)' >&2";
    if (std::system(stacks.c_str()) != 0)
        std::fputs("[watchdog] no stacks: gdb is not here, or may not look\n", stderr);
    // Children die by their parent-death signal; doctest's handler of SIGABRT names the case again.
    std::abort();
}

asio::awaitable<void> noted(asio::awaitable<void> body, bool& ended) {
    co_await std::move(body);
    ended = true;
}

}  // namespace

std::chrono::seconds generous_bound() noexcept { return std::chrono::seconds(90) * slowness; }

watchdog::watchdog(std::chrono::seconds bound) : thread_([this, bound] { watch(bound); }) {}

watchdog::~watchdog() {
    {
        const std::lock_guard lock(mutex_);
        done_ = true;
    }
    ended_.notify_one();
    thread_.join();
}

void watchdog::watch(std::chrono::seconds bound) {
    std::unique_lock lock(mutex_);
    if (!ended_.wait_for(lock, bound, [this] { return done_; }))
        end_hanging_program();
}

void run_coroutine(asio::io_context& context, asio::awaitable<void> body) {
    const watchdog guarded;
    bool returned = false;
    std::optional<std::exception_ptr> end;
    asio::co_spawn(context, noted(std::move(body), returned),
                   [&end](std::exception_ptr error) { end = std::move(error); });
    while (!end && context.run_one() != 0) {
    }
    context.restart();
    if (!end)
        throw std::logic_error("the coroutine waits for nothing: its context has no more work");
    if (*end)
        std::rethrow_exception(*end);
    if (!returned)
        throw std::logic_error("the coroutine was destroyed before its end");
}

void run_coroutine(asio::awaitable<void> body) {
    asio::io_context context;
    run_coroutine(context, std::move(body));
    const watchdog guarded;
    context.run();
}

ready::ready(asio::any_io_executor executor) : ours_(std::move(executor)) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
        throw std::system_error(errno, std::generic_category(), "pipe2");
    child_end_ = ends[1];
    ours_.assign(ends[0]);
}

ready::~ready() { close_child_end(); }

void ready::close_child_end() noexcept {
    if (child_end_ >= 0)
        ::close(std::exchange(child_end_, -1));
}

asio::awaitable<void> ready::wait(int count) {
    for (char byte = 0; count > 0; --count) {
        asio::error_code error;
        co_await ours_.async_read_some(asio::buffer(&byte, 1),
                                       asio::redirect_error(asio::use_awaitable, error));
        if (error)
            throw std::runtime_error(std::to_string(count) +
                                     " workers never said that they are ready: " + error.message());
    }
}

void say_ready(int fd) {
    const char byte = '\n';
    if (::write(fd, &byte, 1) != 1)
        throw std::system_error(errno, std::generic_category(), "say_ready");
}

}  // namespace cohort_test
