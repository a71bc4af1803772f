// SPDX-License-Identifier: BSL-1.0
// Names of shared memory that are still used when this process lets go of them.
#include "base/files/named_file.hpp"
#include "guard.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"
#include "sys_support.hpp"

#include <cohort/queue.hpp>
#include <cohort/shared_array.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

namespace sweeper_test {

using namespace cohort;
using namespace cohort::test;

namespace {

const share_options with_name = share_options().strategy(sharing_strategy::file_system);
using array = shared_array<char>;

bool names_are_denied() {
    const auto why = base::why_no_names().why;
    if (!why.empty())
        skip(why);
    return !why.empty();
}

bool exists(const std::string& name) { return std::filesystem::exists("/dev/shm/" + name); }

/// Polls, because no event tells of it. @return whether it has become true
template <class Condition>
bool becomes_true(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(bound_ms);
    while (!condition() && std::chrono::steady_clock::now() < deadline)
        std::this_thread::yield();
    return condition();
}
bool goes(const std::string& name) {
    return becomes_true([&] { return !exists(name); });
}

auto threads() { return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}); }

}  // namespace

TEST_CASE("sweeper: a name goes with a message that is never read, and the thread goes, too") {
    if (names_are_denied())
        return;
    const leak_guard guard;
    const auto before = threads();
    std::string name;
    {
        queue<array> unread;
        const array sent(with_name, 1 << 20);
        name = sent.name();
        unread.writer().put(sent);
    }
    CHECK(goes(name));
    CHECK(becomes_true([&] { return threads() == before; }));
}

TEST_CASE("sweeper: a name goes after another process that used it was killed") {
    if (names_are_denied())
        return;
    const leak_guard guard;
    array made(with_name, 1);
    const auto name = made.name();
    auto up = make_pipe();
    const pid_t user = fork_child([&] {
        const auto mine = array::attach(name);
        (void)!::write(up.writer.get(), "x", 1);
        ::pause();
        return 0;
    });
    REQUIRE(await_event(up.reader.get()));
    made = {};
    CHECK(exists(name));
    ::kill(user, SIGKILL);
    REQUIRE(::waitpid(user, nullptr, 0) == user);
    CHECK(goes(name));
}

TEST_CASE("sweeper: a name that only the sender knew goes with the queue that it was sent to") {
    if (names_are_denied())
        return;
    if (under_tsan)
        return skip(no_threads_in_copies);
    const leak_guard guard;
    (void)array(with_name, 1);  // draws the session, which the copy has too
    auto told = make_pipe();
    char name[256] = {};
    {
        queue<array> unread;
        unread.keep_both_ends();
        CHECK(in_fork([&] {
                  const array sent(with_name, 1);
                  unread.writer().put(sent);
                  const auto& text = sent.name();
                  return ::write(told.writer.get(), text.data(), text.size()) > 0 ? 0 : 1;
              }) == 0);
        REQUIRE(::read(told.reader.get(), name, sizeof name - 1) > 0);
        CHECK(exists(name));
    }
    CHECK(goes(name));
}

}  // namespace sweeper_test
