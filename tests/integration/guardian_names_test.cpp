// SPDX-License-Identifier: BSL-1.0
// What the guardian does with the names of shared memory that a killed host and its workers leave.
#include "guardian.hpp"
#include "guardian_support.hpp"
#include "held_process.hpp"
#include "live_support.hpp"
#include "methods.hpp"
#include "procfs.hpp"
#include "scratch.hpp"
#include "start_support.hpp"
#include "stream_support.hpp"

#include <cohort/shared_array.hpp>

#include <fmt/format.h>

#include <csignal>
#include <set>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace guardian_names_test {

namespace {

using namespace cohort::test;
using cohort::start_method;

bool has_guardian_and_names() {
    if (const auto sharing = cohort::capabilities().sharing; !sharing.best()) {
        skip(sharing.reason);
        return false;
    }
    return has_guardian();
}

/// A host that has printed the names of its arrays.
class naming_host : public live_host {
public:
    using live_host::live_host;

    asio::awaitable<void> start_holding(start_method method) {
        co_await start(
            cohort::command(COHORT_PROGRAM_NAMING_HOST, "held", static_cast<int>(method)));
        co_await held.wait(4);  // two workers, each with a child
    }
    /// The name of one of its own arrays, in the order in which they were made.
    std::string printed(std::size_t index) const {
        return lines_of(read_file(directory.file("out"))).at(index);
    }
    /// The names in /dev/shm that the host and its workers have made.
    std::set<std::string> names() const {
        const auto one = printed(0);  // "cohort.UID.SESSION.PID.NUMBER"
        const auto prefix = one.substr(0, one.rfind('.', one.rfind('.') - 1) + 1);
        std::set<std::string> found;
        for (const auto& name : names_in("/dev/shm"))
            if (name.starts_with(prefix))
                found.insert(name);
        return found;
    }
    /// Kills the host and waits for the end of its guardian.
    asio::awaitable<void> kill_and_await_guardian() {
        const held_process guardian(await_guardian(pid()));
        co_await kill();
        co_await until_all_are_gone();
        CHECK(guardian.ends());
    }
};

asio::awaitable<void> leaves_no_name(start_method method) {
    naming_host host(co_await asio::this_coro::executor);
    co_await host.start_holding(method);
    CHECK(host.names().size() == 4);
    co_await host.kill_and_await_guardian();
    CHECK(host.names().empty());
}

asio::awaitable<void> leaves_used_names() {
    naming_host host(co_await asio::this_coro::executor);
    co_await host.start_holding(start_method::spawn);
    const auto mapped = host.printed(0);
    const auto locked = host.printed(1);
    auto array = cohort::shared_array<int>::attach(mapped);
    open_file file("/dev/shm/" + locked, O_RDONLY | O_CLOEXEC);
    REQUIRE(::flock(file.get(), LOCK_SH | LOCK_NB) == 0);
    co_await host.kill_and_await_guardian();
    CHECK(fmt::format("{}", fmt::join(host.names(), " ")) == mapped + " " + locked);
    array = {};
    file.close();
    ::unlink(("/dev/shm/" + locked).c_str());
    CHECK(host.names().empty());
}

enum class first_guardian { lives, is_killed };

/// The host makes its array when it starts no group any more.
asio::awaitable<void> leaves_no_late_name(first_guardian first) {
    naming_host host(co_await asio::this_coro::executor);
    co_await host.start(cohort::command(COHORT_PROGRAM_NAMING_HOST, "late", 1));
    co_await host.held.wait();
    if (first == first_guardian::is_killed) {
        const held_process guardian(await_guardian(host.pid()));
        guardian.kill();
        CHECK(guardian.ends());
    }
    host.hold.open();
    co_await host.held.wait();
    CHECK(host.names().size() == 1);
    co_await host.kill_and_await_guardian();
    CHECK(host.names().empty());
}

/// Kills a host and its guardian. The next program of this user removes the names when it starts.
asio::awaitable<void> leaves_names_to_the_next_program() {
    constexpr int count = 100;
    const auto executor = co_await asio::this_coro::executor;
    naming_host host(executor);
    co_await host.start(cohort::command(COHORT_PROGRAM_NAMING_HOST, "late", count));
    co_await host.held.wait();
    host.hold.open();
    co_await host.held.wait();
    const auto names = host.names();
    CHECK(names.size() == count);
    const auto mapped = cohort::shared_array<int>::attach(*names.begin());
    std::vector<open_file> locks;  // against programs of this user that start just now
    for (const auto& name : names) {
        locks.emplace_back("/dev/shm/" + name, O_RDONLY | O_CLOEXEC);
        REQUIRE(::flock(locks.back().get(), LOCK_SH | LOCK_NB) == 0);
    }
    const held_process guardian(await_guardian(host.pid()));
    guardian.signal(SIGTERM);
    guardian.kill();
    CHECK(guardian.ends());
    CHECK(host.names() == names);
    CHECK(mapped(0) == 0);
    co_await host.kill();
    CHECK(host.names() == names);

    locks.clear();
    naming_host next(executor);
    co_await next.start(cohort::command(COHORT_PROGRAM_NAMING_HOST, "late", 1));
    co_await next.held.wait();
    // Another program of this user, which starts just now, may be the one that removes them.
    co_await until([&] { return host.names() == std::set{mapped.name()}; });
    co_await next.kill();
}

}  // namespace

TEST_CASE("guardian names: after a host was killed no name of its arrays or its workers' is left") {
    if (!has_guardian_and_names())
        return;
    for (const auto method : all_methods) {
        CAPTURE(static_cast<int>(method));
        const leak_guard guard;
        run_coroutine(leaves_no_name(method));
    }
}

TEST_CASE("guardian names: a name stays while another process has mapped or locked the memory") {
    if (!has_guardian_and_names())
        return;
    const leak_guard guard;
    run_coroutine(leaves_used_names());
}

TEST_CASE("guardian names: a name that is made after the last start of a group is removed") {
    if (!has_guardian_and_names())
        return;
    const leak_guard guard;
    run_coroutine(leaves_no_late_name(first_guardian::lives));
}

TEST_CASE("guardian names: a guardian that replaces a killed one removes the names as well") {
    if (!has_guardian_and_names())
        return;
    const leak_guard guard;
    run_coroutine(leaves_no_late_name(first_guardian::is_killed));
}

TEST_CASE(
    "guardian names: what a host leaves that was killed with its guardian goes with the next") {
    if (!has_guardian_and_names())
        return;
    const leak_guard guard;
    run_coroutine(leaves_names_to_the_next_program());
}

}  // namespace guardian_names_test
