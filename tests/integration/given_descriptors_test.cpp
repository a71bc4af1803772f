// SPDX-License-Identifier: BSL-1.0
// When spawn has completed, this process holds no descriptor for a worker that it does not use
// itself. Otherwise whoever reads the other end of a given pipe would never see its end.
#include "forkserver_support.hpp"
#include "group_test.hpp"
#include "methods.hpp"
#include "pipes.hpp"
#include "procfs.hpp"
#include "scratch.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace given_descriptors_test {

using namespace cohort::test;

namespace {

void wait_at_gate(int) {
    char none;
    (void)!::read(gate::number, &none, 1);
}
void wait_with_array(int index, cohort::shared_array<int>) { wait_at_gate(index); }
void wait_with_queue(int index, cohort::queue_writer<int>) { wait_at_gate(index); }
void wait_with_arrays(int index, const std::vector<cohort::shared_array<int>>&) {
    wait_at_gate(index);
}
void wait_with_sync(int index, const cohort::event&, const cohort::barrier& all,
                    const cohort::mutex&) {
    wait_at_gate(index);
    all.arrive_and_drop();
}
cohort::shared_array<int> wait_and_make(int index) {
    wait_at_gate(index);
    return cohort::shared_array<int>(1);
}

/// More than one message carries.
constexpr int very_many = 300;

std::vector<cohort::shared_array<int>> very_many_arrays() {
    std::vector<cohort::shared_array<int>> made;
    for (int i = 0; i < very_many; ++i)
        made.emplace_back(1);
    return made;
}

/// "pipe", "pidfd", "record", "socket" or, for what this file does not name, the whole link.
std::string kind_of(const std::string& link) {
    for (const char* const known : {"pipe:", "pidfd", "cohort-record", "socket:"})
        if (link.find(known) != std::string::npos)
            return known;
    return link;
}

std::map<std::string, int> descriptors_by_kind() {
    std::map<std::string, int> count;
    for (const auto& [number, link] : open_descriptors())
        // The group's own, where it has them: of its cgroup and of its logs.
        if (!link.starts_with("/sys/fs/cgroup") && !link.ends_with("/attempt_0"))
            ++count[kind_of(link)];
    return count;
}

/// What this process holds more than before, in words; `used` is what it uses itself.
std::string kept_beyond(std::map<std::string, int> before, const std::map<std::string, int>& used) {
    for (const auto& [kind, count] : used)
        before[kind] += count;
    std::string kept;
    for (const auto& [kind, count] : descriptors_by_kind())
        if (count > before[kind])
            kept += fmt::format("{} of \"{}\"; ", count - before[kind], kind);
    return kept;
}

/// Starts two workers that wait at `g`, and looks at the descriptors while they live.
asio::awaitable<void> look(std::function<asio::awaitable<cohort::group>()> spawn, gate& g,
                           std::map<std::string, int> used) {
    used["pidfd"] += 2;
    used["cohort-record"] += 2;
    const auto before = descriptors_by_kind();
    auto group = co_await spawn();
    CHECK(kept_beyond(before, used) == "");
    g.open();
    co_await group.join();
}

/// Two workers whose streams and further numbers are given descriptors.
cohort::options given(const gate& g, cohort::start_method method) {
    pipe_pair pipe;
    const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    auto how = by(method, 2)
                   .fd(g.child_end(), gate::number)
                   .fd(null, STDIN_FILENO)
                   .fd(pipe.writes(), STDOUT_FILENO)
                   .fd(pipe.writes(), STDERR_FILENO)
                   .fd(pipe.reads(), 17);
    ::close(null);
    return how;
}

cohort::command waiting() { return cohort::command("sh", "-c", "read line <&8; exit 0"); }

}  // namespace

METHODS_TEST("given descriptors: functions started in any way leave none in this process") {
    for (const auto method : all_methods)
        for (const bool with_logs : {false, true}) {
            CAPTURE(static_cast<int>(method));
            CAPTURE(with_logs);
            const scratch_directory scratch;
            const auto how = [&](const gate& g) {
                auto all = given(g, method);
                return with_logs ? all.logs(cohort::logs(scratch.path())) : all;
            };
            std::map<std::string, int> used;
            if (with_logs)
                used[std::filesystem::current_path().string()] = 1;  // for the report
            gate first, second, third;
            co_await look(
                [&] { return cohort::spawn(cohort::function<wait_at_gate>(), how(first)); }, first,
                used);
            const cohort::shared_array<int> array(100);
            co_await look(
                [&] {
                    return cohort::spawn(cohort::function<wait_with_array>(array), how(second));
                },
                second, used);
            cohort::queue<int> queue;
            const auto writer = queue.writer();
            co_await look(
                [&] {
                    return cohort::spawn(cohort::function<wait_with_queue>(writer), how(third));
                },
                third, used);
        }
}

METHODS_TEST("given descriptors: of captured and fed workers this process keeps its ends alone") {
    for (const auto method : all_methods) {
        CAPTURE(static_cast<int>(method));
        gate g;
        const auto spawn = [&] {
            return cohort::spawn(cohort::function<wait_at_gate>(),
                                 by(method, 2)
                                     .fd(g.child_end(), gate::number)
                                     .stdin_from(cohort::feed())
                                     .stdout_to(cohort::capture(), cohort::lines())
                                     .stderr_to(cohort::capture()));
        };
        std::map<std::string, int> used;
        used["pipe:"] = 6;
        co_await look(spawn, g, used);
    }
}

METHODS_TEST(
    "given descriptors: of files that workers print to this process keeps what it writes") {
    for (const auto method : all_methods) {
        CAPTURE(static_cast<int>(method));
        const scratch_directory scratch;
        const auto all = scratch.file("all");
        gate own, shared;
        const auto spawn = [&](const gate& g, cohort::file to) {
            return cohort::spawn(cohort::function<wait_at_gate>(),
                                 by(method, 2)
                                     .fd(g.child_end(), gate::number)
                                     .stdin_from(cohort::bytes("text"))
                                     .stdout_to(to)
                                     .stderr_to(cohort::merge()));
        };
        // The workers open these themselves.
        co_await look([&] { return spawn(own, cohort::file(scratch.file("{index}"))); }, own, {});
        std::map<std::string, int> used;
        used["pipe:"] = 2;
        used[all] = 1;
        co_await look([&] { return spawn(shared, cohort::file(all).tagged()); }, shared, used);
    }
}

METHODS_TEST("given descriptors: of arguments none stays, however many there are") {
    for (const auto method : all_methods) {
        CAPTURE(static_cast<int>(method));
        gate many, sync;
        co_await look(
            [&] {
                return cohort::spawn(cohort::function<wait_with_arrays>(very_many_arrays()),
                                     by(method, 2).fd(many.child_end(), gate::number));
            },
            many, {});
        const cohort::event event;
        const cohort::barrier barrier(2);
        const cohort::mutex mutex;
        co_await look(
            [&] {
                return cohort::spawn(cohort::function<wait_with_sync>(event, barrier, mutex),
                                     by(method, 2).fd(sync.child_end(), gate::number));
            },
            sync, {});
    }
}

METHODS_TEST("given descriptors: none stays of more than one message carries") {
    for (const auto method : all_methods) {
        CAPTURE(static_cast<int>(method));
        gate g;
        const auto spawn = [&] {
            auto how = given(g, method);
            for (int number = 100; number < 100 + very_many; ++number)
                how.fd(g.child_end(), number);
            return cohort::spawn(cohort::function<wait_at_gate>(), how);
        };
        co_await look(spawn, g, {});
    }
}

METHODS_TEST("given descriptors: for results and stacks this process keeps one end of each") {
    for (const auto method : all_methods) {
        CAPTURE(static_cast<int>(method));
        gate g;
        const auto spawn = [&] {
            return cohort::spawn(cohort::function<wait_and_make>(),
                                 by(method, 2).fd(g.child_end(), gate::number).stack_on_stop(true));
        };
        std::map<std::string, int> used;
        used["socket:"] = 2;
        used["pipe:"] = 2;
        co_await look(spawn, g, used);
    }
}

GROUP_TEST("given descriptors: of what a closure keeps none is held twice") {
    const auto arrays = very_many_arrays();
    const cohort::event event;
    cohort::queue<int> queue;
    const auto writer = queue.writer();
    gate g;
    const auto body = [arrays, event, writer](int index) { wait_at_gate(index); };
    const auto spawn = [&] {
        return cohort::spawn(cohort::closure(body).keep(arrays, event, writer),
                             by(cohort::start_method::fork, 2)
                                 .fd(g.child_end(), gate::number)
                                 .stdout_to(cohort::discard()));
    };
    co_await look(spawn, g, {});
}

GROUP_TEST("given descriptors: commands leave none in this process, nor does share()") {
    const cohort::shared_array<int> array(100);
    cohort::queue<int> queue;
    const auto writer = queue.writer();
    gate g;
    const auto spawn = [&] {
        return cohort::spawn(waiting().share("array", array).share("queue", writer),
                             given(g, cohort::start_method::spawn));
    };
    co_await look(spawn, g, std::map<std::string, int>());
}

GROUP_TEST("given descriptors: the reader of a given pipe sees its end when the worker has ended") {
    pipe_pair pipe;
    auto group = co_await cohort::spawn(cohort::command("true").fd(pipe.writes(), STDOUT_FILENO));
    pipe.close_writes();
    co_await group.wait();
    char byte;
    REQUIRE(::fcntl(pipe.reads(), F_SETFL, O_NONBLOCK) == 0);
    CHECK(::read(pipe.reads(), &byte, 1) == 0);
}

}  // namespace given_descriptors_test
