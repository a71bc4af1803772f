// SPDX-License-Identifier: BSL-1.0
// Names in /dev/shm whose files another process locks: no call waits for it, and no name is lost.
#include "group_test.hpp"
#include "names_support.hpp"
#include "pipes.hpp"
#include "procfs.hpp"
#include "reporter.hpp"

#include <cohort/cohort.hpp>

#include <doctest/doctest.h>

#include <csignal>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace named_lock_test {

using namespace cohort::test;
using cohort::shared_array;

namespace {

/// A name as arrays draw them, so that a sweep looks at it.
std::string drawn_name() {
    static const std::string of_a_moment =
        shared_array<char>(cohort::share_options().strategy(cohort::sharing_strategy::file_system),
                           1)
            .name();
    return of_a_moment + ".locked";
}
std::string path_of(const std::string& name) { return "/dev/shm/" + name; }
bool exists(const std::string& name) { return ::access(path_of(name).c_str(), F_OK) == 0; }
auto named(const std::string& name) {
    return shared_array<int>(cohort::share_options().name(name), 3);
}

/// Leaves an array's file, as a program does that is killed.
void leave(const std::string& name) {
    const pid_t killed = ::fork();
    if (killed == 0) {
        const auto left = named(name);
        ::raise(SIGKILL);
    }
    REQUIRE(::waitpid(killed, nullptr, 0) == killed);
}

/// Another process that locks a file exclusively, and waits if it has to. Made before the arrays of
/// this process, because its copies of their mappings would hold their locks.
class locker {
public:
    explicit locker(const std::string& name) : pid_(::fork()) {
        if (pid_ == 0)
            lock(path_of(name));
    }
    locker(const locker&) = delete;
    locker& operator=(const locker&) = delete;
    ~locker() { kill(); }

    void begin() const { say_ready(go_.writes()); }
    /// @return false: the file's name was not there any more, so begin again
    bool await_lock() const {
        bool is_there = false;
        REQUIRE(::read(answers_.reads(), &is_there, 1) == 1);
        return is_there;
    }
    /// Returns when it waits for the lock. There is no event. @return false: it can't be seen
    bool await_wait() const {
        const auto waits = std::to_string(SYS_flock) + " ";
        if (read_proc(::getpid(), "syscall").empty())
            return false;
        while (!read_proc(pid_, "syscall").starts_with(waits))
            std::this_thread::yield();
        return true;
    }
    void kill() {
        if (!pid_)
            return;
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        pid_ = 0;
    }

private:
    [[noreturn]] void lock(const std::string& path) const {
        for (char byte = 0; ::read(go_.reads(), &byte, 1) == 1;) {
            const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
            const bool is_there = ::flock(file, LOCK_EX) == 0 && ::access(path.c_str(), F_OK) == 0;
            if (!is_there)
                ::close(file);
            if (::write(answers_.writes(), &is_there, 1) != 1)
                break;
        }
        ::_exit(1);
    }

    pipe_pair go_;
    pipe_pair answers_;
    pid_t pid_;
};

template <class Call>
std::optional<std::error_code> error_of(Call call) {
    try {
        (void)call();
    } catch (const cohort::sharing_error& e) {
        return e.code();
    }
    return std::nullopt;
}

}  // namespace

TEST_CASE("named lock: what another process has locked is busy, and stays until it is free") {
    if (names_are_denied())
        return;
    const leak_guard guard;
    const watchdog bounded;
    const auto name = drawn_name();
    locker other(name);
    do {  // again if another program of this user has removed the name meanwhile
        leave(name);
        other.begin();
    } while (!other.await_lock());
    CHECK(error_of([&] { return shared_array<int>::attach(name); }) ==
          std::errc::device_or_resource_busy);
    CHECK(error_of([&] { return shared_array<const int>::attach(name); }) ==
          std::errc::device_or_resource_busy);
    CHECK(error_of([&] { return named(name); }) == std::errc::file_exists);
    (void)cohort::sweep_shared_memory();
    CHECK(exists(name));
    other.kill();
    CHECK(shared_array<int>::attach(name).size() == 3);
    CHECK_FALSE(exists(name));
}

TEST_CASE("named lock: nobody gets the lock of an array in use, and its end waits for nobody") {
    if (names_are_denied())
        return;
    const leak_guard guard;
    const watchdog bounded;
    const auto before = names();
    const auto name = drawn_name();
    locker other(name);
    std::optional array = named(name);
    const int again = ::open(path_of(name).c_str(), O_RDONLY | O_CLOEXEC);
    CHECK(::flock(again, LOCK_EX | LOCK_NB) != 0);
    ::close(again);
    other.begin();
    if (!other.await_wait()) {
        array.reset();
        return skip("needs /proc/PID/syscall, to see that a process waits");
    }
    CHECK(array->read_only()(0) == 0);
    CHECK(shared_array<int>::attach(name).shares_memory_with(*array));
    array.reset();  // it or the other process has the lock now: either may be the first
    (void)other.await_lock();
    (void)cohort::sweep_shared_memory();
    other.kill();
    CHECK(names_go(before));
}

}  // namespace named_lock_test
