// SPDX-License-Identifier: BSL-1.0
// Measures the time from a worker's exit to the next line of this program, and from a worker's
// failure to SIGTERM in its siblings.
#include "asio_ticker.hpp"
#include "raw.hpp"
#include "sections.hpp"
#include "shared_stamps.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace bench {
namespace {

constexpr int number_in_worker = 100;

/// Times in microseconds, one value a run.
struct results {
    /// With one worker: from its exit to the next line here. With more: from the failure to the
    /// first sibling's handler.
    std::vector<double> first;
    std::vector<double> last;  // from the failure to the last sibling's handler

    void add(const stamps& seen, int size, std::int64_t resumed) {
        const auto since = [&](std::int64_t time) { return double(time - seen.ended) / 1000; };
        if (size == 1) {
            first.push_back(since(resumed));
            return;
        }
        const auto [lowest, highest] =
            std::minmax_element(seen.signalled + 1, seen.signalled + size);
        first.push_back(since(*lowest));
        last.push_back(since(*highest));
    }
};

asio::awaitable<void> with_cohort(const std::string& program, int runs, int size, results& to) {
    shared_stamps shared;
    auto make = [&](int index) { return cohort::command(program, number_in_worker, index, size); };
    for (int i = 0; i < runs; ++i) {
        shared.clear();
        auto group = co_await cohort::spawn(
            cohort::command_for(make), cohort::options(size).fd(shared.fd(), number_in_worker));
        try {
            co_await group.join();
        } catch (const cohort::process_exited_exception&) {
        }
        to.add(*shared, size, now());
    }
}

raw_child start(const std::string& program, int fd, int index, int size) {
    std::array<std::string, 4> words{program, std::to_string(fd), std::to_string(index),
                                     std::to_string(size)};
    char* const argv[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(),
                          nullptr};
    return start_by_clone(argv);
}

/// The minimum that a program must do: an epoll loop that reaps each child that ends and, after the
/// first one, signals the others.
void with_epoll(const std::string& program, int runs, int size, results& to) {
    shared_stamps shared;
    for (int i = 0; i < runs; ++i) {
        shared.clear();
        const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
        std::vector<raw_child> children;
        for (int index = 0; index < size; ++index) {
            children.push_back(start(program, shared.fd(), index, size));
            epoll_event event{EPOLLIN, {.fd = index}};
            ::epoll_ctl(epoll, EPOLL_CTL_ADD, children.back().pidfd, &event);
        }
        std::int64_t resumed = 0;
        for (int left = size; left > 0; --left) {
            epoll_event event{};
            if (::epoll_wait(epoll, &event, 1, -1) != 1)
                throw std::system_error(errno, std::system_category(), "epoll_wait");
            auto& ended = children[static_cast<std::size_t>(event.data.fd)];
            reap(ended);
            ended.pidfd = -1;
            if (left < size)
                continue;
            resumed = now();
            for (const auto& child : children)
                if (child.pidfd >= 0)
                    ::syscall(SYS_pidfd_send_signal, child.pidfd, SIGTERM, nullptr, 0);
        }
        ::close(epoll);
        to.add(*shared, size, resumed);
    }
}

}  // namespace

void latency(const arguments& words) {
    const std::string program = words.text("program");
    const int runs = words.number("runs");
    const int size = words.number("workers");
    if (size < 1 || size > stamps::most)
        throw std::invalid_argument("workers: 1 to 64");
    results to;
    if (words.text("peer") == "cohort")
        run_beside(nullptr, with_cohort(program, runs, size, to));
    else
        with_epoll(program, runs, size, to);
    fmt::print("{{\"first_us\": [{}], \"last_us\": [{}]}}\n", fmt::join(to.first, ", "),
               fmt::join(to.last, ", "));
}

}  // namespace bench
