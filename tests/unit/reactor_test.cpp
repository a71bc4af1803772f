// SPDX-License-Identifier: BSL-1.0
#include "reactor_support.hpp"
#include "sanitizers.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <map>
#include <stop_token>

#include <sys/mman.h>

namespace reactor_test {

using namespace reactor_test;

TEST_CASE_TEMPLATE("reactor: wait does not return before the deadline", TestType, SLEEPERS) {
    MAKE(r);
    for (const auto span : {0ns, 1ns, 70'000ns, 1'500'000ns, 20'000'001ns}) {
        const auto until = clock_type::now() + span;
        events found;
        r.wait(until, found);
        CHECK(clock_type::now() >= until);
        CHECK(found.empty());
    }
}

TEST_CASE_TEMPLATE("reactor: the farthest and the nearest deadline of the clock work like others",
                   TestType, BODIES) {
    MAKE(r);
    events found;
    r.wait(clock_type::time_point::min(), found);
    r.wake();
    r.wait(clock_type::time_point::max(), found);
    const child one;
    one.kill_and_leave_zombie();
    CHECK_FALSE(r.watch_readable(1, one.pidfd));
    r.wait(clock_type::time_point::max(), found);
    CHECK(found.size() == 1);
}

TEST_CASE_TEMPLATE("reactor: a wake before the wait is not lost, and is used up by it", TestType,
                   SLEEPERS) {
    MAKE(r);
    for (int round = 0; round < 1000; ++round) {
        for (int i = 0; i <= round % 3; ++i)
            r.wake();
        events found;
        r.wait(std::nullopt, found);
        CHECK(found.empty());
    }
    const auto until = clock_type::now() + 1ms;
    events found;
    r.wait(until, found);
    CHECK(clock_type::now() >= until);
}

TEST_CASE_TEMPLATE("reactor: a wait without deadline blocks until wake", TestType, SLEEPERS) {
    MAKE(r);
    for (int round = 0; round < 50; ++round) {
        bool called = false;  // not atomic: wake() and wait() order it
        std::jthread waker([&, sleeper = ::gettid()] {
            wait_until_asleep(sleeper);
            called = true;
            r.wake();
        });
        events found;
        r.wait(std::nullopt, found);
        CHECK(called);
        CHECK(found.empty());
    }
}

TEST_CASE_TEMPLATE("reactor: of the wakes of four threads none is lost", TestType, SLEEPERS) {
    MAKE(r);
    constexpr int threads = 4, rounds = 5000;
    // Each thread waits until its call was noticed, so that one lost call stops it for good.
    std::array<std::atomic<int>, threads> called{}, noticed{};
    std::atomic<bool> failed = false;
    std::vector<std::jthread> wakers;
    for (std::size_t t = 0; t < threads; ++t)
        wakers.emplace_back([&, t] {
            for (int i = 0; i < rounds && !failed; ++i) {
                called[t].store(i + 1, std::memory_order_relaxed);  // ordered by wake() alone
                r.wake();
                noticed[t].wait(i);
            }
        });
    events found;
    for (int total = 0; total < threads * rounds && !failed;) {
        const auto until = clock_type::now() + bound;
        r.wait(until, found);
        failed = clock_type::now() >= until;
        for (std::size_t t = 0; t < threads; ++t) {
            const int now = called[t].load(std::memory_order_relaxed);
            total += now - noticed[t].exchange(failed ? rounds : now);
            noticed[t].notify_one();
        }
    }
    CHECK_FALSE(failed);
}

TEST_CASE_TEMPLATE("reactor: wakes without pause end every wait", TestType, SLEEPERS) {
    MAKE(r);
    std::jthread waker([&](std::stop_token stop) {
        while (!stop.stop_requested())
            r.wake();
    });
    events found;
    for (int round = 0; round < 20'000; ++round)
        r.wait(std::nullopt, found);
    CHECK(found.empty());
}

TEST_CASE_TEMPLATE("reactor: a wake from a signal handler ends the wait", TestType, SLEEPERS) {
    MAKE(r);
    static std::atomic<reactor*> target;
    target = &r;
    struct sigaction action {
    }, before{};
    action.sa_handler = [](int) { target.load()->wake(); };
    ::sigaction(SIGUSR1, &action, &before);
    {
        std::jthread sender([sleeper = ::gettid()] {
            wait_until_asleep(sleeper);
            ::syscall(SYS_tgkill, ::getpid(), sleeper, SIGUSR1);
        });
        events found;
        r.wait(std::nullopt, found);
    }
    ::sigaction(SIGUSR1, &before, nullptr);
}

TEST_CASE_TEMPLATE("reactor: the end of a process is one event", TestType, BODIES) {
    MAKE(r);
    const child one;
    CHECK_FALSE(r.watch_readable(7, one.pidfd));
    CHECK(poll(r).empty());
    ::kill(one.pid, SIGKILL);
    const auto found = wait_for(r, 1);
    CHECK(found[0].id == 7);
    CHECK(found[0].result == 0);
    CHECK(poll(r).empty());
}

TEST_CASE_TEMPLATE("reactor: a process that is dead already is reported", TestType, BODIES) {
    MAKE(r);
    const child one;
    one.kill_and_leave_zombie();
    CHECK_FALSE(r.watch_readable(1, one.pidfd));
    CHECK(wait_for(r, 1)[0].id == 1);
}

TEST_CASE_TEMPLATE("reactor: after its event a pidfd may be watched again", TestType, BODIES) {
    MAKE(r);
    const child one;
    one.kill_and_leave_zombie();
    for (ticket id = 1; id < 100; ++id) {
        CHECK_FALSE(r.watch_readable(id, one.pidfd));
        const auto found = wait_for(r, 1);
        CHECK(found[0].id == id);
        CHECK(found[0].result == 0);
    }
}

TEST_CASE_TEMPLATE("reactor: 500 ends at once are 500 events", TestType, BODIES) {
    MAKE(r);
    std::vector<child> all(500);
    std::map<ticket, int> times;
    for (std::size_t i = 0; i < all.size(); ++i) {
        CHECK_FALSE(r.watch_readable(i + 1, all[i].pidfd));
        times[i + 1] = 0;
    }
    CHECK(poll(r).empty());
    for (const child& one : all)
        one.kill_and_leave_zombie();
    for (const event& e : wait_for(r, all.size())) {
        ++times[e.id];
        CHECK(e.result == 0);
    }
    CHECK(times.size() == all.size());
    CHECK(std::ranges::all_of(times, [](const auto& t) { return t.second == 1; }));
    CHECK(poll(r).empty());
}

TEST_CASE_TEMPLATE("reactor: reads go to their buffers, a read beyond the end has 0 bytes",
                   TestType, BODIES) {
    MAKE(r);
    const int file = ::memfd_create("reactor_test", MFD_CLOEXEC);
    std::string text(300, ' ');
    for (std::size_t i = 0; i < text.size(); ++i)
        text[i] = static_cast<char>('a' + i % 23);
    REQUIRE(::write(file, text.data(), text.size()) == 300);
    std::vector<std::array<char, 8>> buffers(310);
    for (std::size_t i = 0; i < buffers.size(); ++i)
        CHECK_FALSE(r.read(i + 1, file, std::as_writable_bytes(std::span(buffers[i])), i));
    for (const event& e : wait_for(r, buffers.size())) {
        const std::size_t offset = e.id - 1;
        const std::string rest = offset < text.size() ? text.substr(offset, 8) : "";
        CHECK(std::string(buffers[offset].data(), static_cast<std::size_t>(e.result)) == rest);
    }
    CHECK(::lseek(file, 0, SEEK_CUR) == 300);
    ::close(file);
}

TEST_CASE_TEMPLATE("reactor: what is wrong with a request comes as its event", TestType, BODIES) {
    MAKE(r);
    std::array<std::byte, 8> buffer{};
    CHECK_FALSE(r.read(1, -1, buffer, 0));
    CHECK_FALSE(r.watch_readable(2, -1));
    CHECK_FALSE(r.read(3, 0, buffer, ~std::uint64_t{0}));
    std::map<ticket, int> results;
    for (const event& e : wait_for(r, 3))
        results[e.id] = e.result;
    CHECK(results == std::map<ticket, int>{{1, -EBADF}, {2, -EBADF}, {3, -EINVAL}});
}

}  // namespace reactor_test
