// SPDX-License-Identifier: BSL-1.0
#include "raw.hpp"

#include "asio_ticker.hpp"

#include <asio.hpp>

#include <cerrno>
#include <memory>
#include <system_error>

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace bench {
namespace {

using std::chrono::steady_clock;

int own_pidfd(raw_child child) {
    if (child.pidfd >= 0)
        return child.pidfd;
    const long opened = ::syscall(SYS_pidfd_open, child.pid, 0);
    if (opened < 0)
        throw std::system_error(errno, std::system_category(), "pidfd_open");
    return static_cast<int>(opened);
}

asio::awaitable<void> on_loop(const job& todo, raw_start start, std::vector<duration>& took) {
    auto executor = co_await asio::this_coro::executor;
    char* const argv[] = {const_cast<char*>(todo.program.c_str()), nullptr};
    for (int wave = 0; wave < todo.waves; ++wave) {
        const auto before = steady_clock::now();
        std::vector<asio::posix::stream_descriptor> pidfds;
        std::vector<pid_t> pids;
        for (int i = 0; i < todo.at_once; ++i) {
            const raw_child child = start(argv);
            pids.push_back(child.pid);
            pidfds.emplace_back(executor, own_pidfd(child));
        }
        for (std::size_t i = 0; i < pidfds.size(); ++i) {
            co_await pidfds[i].async_wait(asio::posix::stream_descriptor::wait_read,
                                          asio::use_awaitable);
            reap({pids[i], -1});
        }
        took.push_back(steady_clock::now() - before);
    }
}

std::vector<duration> blocking(const job& todo, raw_start start) {
    char* const argv[] = {const_cast<char*>(todo.program.c_str()), nullptr};
    std::vector<duration> took;
    std::vector<raw_child> children(static_cast<std::size_t>(todo.at_once));
    for (int wave = 0; wave < todo.waves; ++wave) {
        const auto before = steady_clock::now();
        for (auto& child : children)
            child = start(argv);
        for (auto& child : children)
            reap(child);
        took.push_back(steady_clock::now() - before);
    }
    return took;
}

asio::awaitable<void> sleep_for(int milliseconds) {
    asio::steady_timer timer(co_await asio::this_coro::executor,
                             std::chrono::milliseconds(milliseconds));
    co_await timer.async_wait(asio::use_awaitable);
}

}  // namespace

void reap(raw_child child) {
    siginfo_t how{};
    const bool by_pidfd = child.pidfd >= 0;
    if (::waitid(by_pidfd ? P_PIDFD : P_PID, static_cast<id_t>(by_pidfd ? child.pidfd : child.pid),
                 &how, WEXITED) != 0)
        throw std::system_error(errno, std::system_category(), "waitid");
    if (by_pidfd)
        ::close(child.pidfd);
}

std::vector<duration> run_raw(const job& todo, raw_start start) {
    if (todo.beside == nullptr)
        return blocking(todo, start);
    std::vector<duration> took;
    run_beside(todo.beside, on_loop(todo, start, took));
    return took;
}

std::vector<duration> run_nothing(const job& todo) {
    if (todo.beside != nullptr)
        run_beside(todo.beside, sleep_for(todo.waves));
    return {};
}

}  // namespace bench
