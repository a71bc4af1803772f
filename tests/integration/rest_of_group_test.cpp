// SPDX-License-Identifier: BSL-1.0
// What a worker has left in its process group is gone when its end is told, and before it starts
// again.
#include "cgroup_support.hpp"
#include "held_process.hpp"
#include "pipes.hpp"
#include "sanitizers.hpp"
#include "silent_file_system.hpp"
#include "start_support.hpp"
#include "worker_support.hpp"

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace rest_of_group_test {

using namespace cohort::test;
using namespace std::chrono_literals;

namespace {

/// Starts a process that does this and lives on. Waits until it says so, on the descriptor that
/// `todo` gets.
template <class Todo>
void start_child(Todo todo) {
    pipe_pair said;
    if (::fork() == 0) {
        todo(said.writes());
        sleep_until_killed();
    }
    said.close_writes();
    char byte = 0;
    if (::read(said.reads(), &byte, 1) != 1)
        throw std::runtime_error("the child has ended");
}

/// Another child in a session of its own locks the file.
void leave_lock_holder_elsewhere(const std::string& file) {
    start_child([&](int say) {
        ::setsid();
        const int lock = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (::flock(lock, LOCK_EX) == 0)
            say_ready(say);
    });
}

/// The child locks the file. When it is killed the kernel takes its memory away before the lock,
/// and the memory is large, so that this lasts. Its last thread does that, when the first one may
/// be a zombie.
void leave_lock_holder(const std::string& file) {
    start_child([&](int say) {
        constexpr std::size_t size = 128 << 20;
        void* const memory =
            ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ::madvise(memory, size, MADV_NOHUGEPAGE);  // many small pages last longer
        std::memset(memory, 1, size);
        if (!under_asan && !under_tsan)  // they support no threads here
            std::thread([] { sleep_until_killed(); }).detach();
        const int lock = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (::flock(lock, LOCK_EX) == 0)
            say_ready(say);
    });
}

bool is_locked(const std::string& file) {
    const open_file opened(file);
    return ::flock(opened.get(), LOCK_EX | LOCK_NB) != 0;
}

void return_and_leave(int, const std::string& file) { leave_lock_holder(file); }

void meet_the_last_attempt(int, const std::string& file, bool is_elsewhere) {
    if (cohort::this_worker::attempt() == 0) {
        (is_elsewhere ? leave_lock_holder_elsewhere : leave_lock_holder)(file);
        ::raise(SIGKILL);
    }
    if (is_locked(file))
        throw std::runtime_error("the last attempt holds its lock still");
}

/// The parent of the zombie is in another process group, and does not reap it.
void leave_zombie(int, const std::string& file) {
    const pid_t group = ::getpid();
    start_child([&](int say) {
        ::setpgid(0, 0);
        const pid_t zombie = ::fork();
        if (zombie == 0) {
            ::setpgid(0, group);
            ::_exit(0);
        }
        std::ofstream(file) << ::getpid() << std::endl;
        siginfo_t ended{};
        if (::waitid(P_PID, static_cast<id_t>(zombie), &ended, WEXITED | WNOWAIT) == 0)
            say_ready(say);
    });
}

/// Each attempt leaves a process that hangs in the kernel; only the first one fails.
void leave_hanging(int, const std::string& file) {
    const int attempt = cohort::this_worker::attempt();
    if (::fork() == 0) {
        (void)::open((file + std::to_string(attempt)).c_str(), O_RDONLY);
        sleep_until_killed();
    }
    char byte = 0;  // by the file system, when it has got the request
    if (::read(ready::number, &byte, 1) != 1 || attempt == 0)
        throw std::runtime_error("attempt " + std::to_string(attempt));
}

}  // namespace

TEST_CASE("rest of group: what a worker has left holds nothing any more when run returns") {
    have_server();
    const leak_guard guard;
    const scratch_directory directory;
    const auto file = directory.file("lock");
    for (int round = 0; round < how_many(20, 3); ++round) {
        run_coroutine(run_whole(cohort::function<return_and_leave>(file),
                                cohort::options(1).cgroup(cohort::cgroup::off)));
        CHECK_FALSE(is_locked(file));
    }
}

TEST_CASE("rest of group: a worker that starts again meets nothing of its last attempt") {
    have_server();
    const leak_guard guard;
    const scratch_directory directory;
    for (int round = 0; round < how_many(20, 3); ++round) {
        const auto report =
            ended(cohort::function<meet_the_last_attempt>(directory.file("lock"), false),
                  cohort::options(1).restart(1));
        CHECK_MESSAGE(report.success(), fmt::format("{}", report));
    }
}

TEST_CASE("rest of group: with a cgroup an attempt's end also ends what is in another session") {
    if (!has_cgroups())
        return;
    have_server();
    const leak_guard guard;
    const scratch_directory directory;
    for (int round = 0; round < how_many(20, 3); ++round) {
        const auto report =
            ended(cohort::function<meet_the_last_attempt>(directory.file("lock"), true),
                  cohort::options(1).restart(1));
        CHECK_MESSAGE(report.success(), fmt::format("{}", report));
    }
}

TEST_CASE("rest of group: a zombie that nobody reaps holds up nothing") {
    have_server();
    const leak_guard guard;
    const scratch_directory directory;
    const auto file = directory.file("parent");
    run_coroutine(run_whole(cohort::function<leave_zombie>(file),
                            cohort::options(1).cgroup(cohort::cgroup::off).kill_timeout(1h)));
    const held_process parent(file);
    CHECK(parent.lives());
    parent.kill();
    CHECK(parent.ends());
}

TEST_CASE("rest of group: one that can't be killed is waited for during kill_timeout only") {
    have_server();
    const leak_guard guard;
    const scratch_directory directory;
    const auto silent = mount_or_skip(directory.path());
    if (!silent)
        return;
    constexpr auto limit = 100ms;
    auto how = cohort::options(1).cgroup(cohort::cgroup::off).kill_timeout(limit).restart(1);
    how.fd(silent->taken(), ready::number);
    const auto report = ended(cohort::function<leave_hanging>(directory.file("x")), how);
    const auto told = std::chrono::steady_clock::now();
    const auto& last = report.outcomes.at(0);
    CHECK_MESSAGE(report.success(), fmt::format("{}", report));
    REQUIRE(last.history.size() == 2);
    CHECK(last.history[1].started - last.history[0].ended >= limit);
    CHECK(told - last.ended >= limit);
}

}  // namespace rest_of_group_test
