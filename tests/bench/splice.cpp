// SPDX-License-Identifier: BSL-1.0
// What workers write goes from their pipes to /dev/null without a copy, and without tags: an epoll
// loop of splice(2).
#include "tee.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace bench {
namespace {

constexpr std::size_t most_a_turn = 65'536;

[[noreturn]] void fail(const char* call, int error = errno) {
    throw std::system_error(error, std::system_category(), call);
}

struct child {
    pid_t pid = -1;
    int from = -1;  // read end of its standard output
};

/// @param told  becomes its descriptor 3, if it is not -1
child start(const tee_job& todo, int told, bool formatted) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
        fail("pipe2");
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    if (told >= 0)
        ::posix_spawn_file_actions_adddup2(&actions, told, 3);
    std::array<std::string, 4> words{todo.program, todo.bytes_of_one(),
                                     formatted ? "formatted" : "plain", "3"};
    char* const argv[] = {words[0].data(), words[1].data(), words[2].data(),
                          told >= 0 ? words[3].data() : nullptr, nullptr};
    child made{-1, ends[0]};
    const int error = ::posix_spawn(&made.pid, argv[0], &actions, nullptr, argv, environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    if (error != 0)
        fail("posix_spawn", error);
    return made;
}

/// @return the bytes that went from all of them to /dev/null
long long pass_all(const std::vector<child>& from) {
    const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
    for (const auto& each : from) {
        epoll_event event{EPOLLIN, {.fd = each.from}};
        ::epoll_ctl(epoll, EPOLL_CTL_ADD, each.from, &event);
    }
    long long passed = 0;
    for (auto open = from.size(); open > 0;) {
        epoll_event ready[16];
        const int count = ::epoll_wait(epoll, ready, 16, -1);
        if (count < 0)
            fail("epoll_wait");
        for (int i = 0; i < count; ++i) {
            const auto done =
                ::splice(ready[i].data.fd, nullptr, null, nullptr, most_a_turn, SPLICE_F_NONBLOCK);
            if (done < 0 && errno != EAGAIN)
                fail("splice");
            if (done > 0)
                passed += done;
            if (done == 0) {
                ::close(ready[i].data.fd);
                --open;
            }
        }
    }
    ::close(epoll);
    ::close(null);
    return passed;
}

void pass_and_reap(const tee_job& todo, const std::vector<child>& workers) {
    const long long passed = pass_all(workers);
    for (const auto& each : workers)
        ::waitpid(each.pid, nullptr, 0);
    check_bytes(todo, passed);
}

}  // namespace

void tee_by_splice(const tee_job& todo) {
    std::vector<child> workers;
    for (int i = 0; i < todo.workers; ++i)
        workers.push_back(start(todo, -1, false));
    pass_and_reap(todo, workers);
}

void splice_one(const tee_job& todo, int told, bool formatted) {
    pass_and_reap(todo, {start(todo, told, formatted)});
}

}  // namespace bench
