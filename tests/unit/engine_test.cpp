// SPDX-License-Identifier: BSL-1.0
// The engine's thread while the kernel takes away what it works with.
#include "loop/engine/reaper.hpp"
#include "reactor_support.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"

#include <array>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <utility>

#include <sys/mman.h>
#include <sys/resource.h>

namespace engine_test {

using namespace reactor_test;

namespace {

/// A child whose end the engine is to see, in a process of its own.
class watched {
public:
    void begin(cohort::loop::reaper& by) {
        by.watch(one_.pidfd, {},
                 [this](const auto& end) { ended_.set_value(end.status.signal()); });
    }
    bool is_alive() { return end_.wait_for(0s) == std::future_status::timeout; }
    bool is_seen_to_end() {
        ::kill(one_.pid, SIGKILL);
        return end_.wait_for(bound) == std::future_status::ready && end_.get() == SIGKILL;
    }

private:
    child one_;
    std::promise<int> ended_;
    std::future<int> end_ = ended_.get_future();
};

/// An engine with its thread, both leaked as in a program.
struct running_engine {
    cohort::loop::engine& loop = *new cohort::loop::engine;
    cohort::loop::reaper& reaper = *new cohort::loop::reaper(loop);

    running_engine() { loop.start(); }

    /// Runs it on the engine's thread. @return whether it did
    bool does(std::function<void()> what) {
        auto done = std::make_shared<std::promise<void>>();
        auto is_done = done->get_future();
        loop.post([what = std::move(what), done] {
            what();
            done->set_value();
        });
        return is_done.wait_for(bound) == std::future_status::ready;
    }
    /// Woken again and again, and by deadlines.
    bool is_awake() {
        for (int i = 0; i < 100; ++i)
            if (!does([] {}))
                return false;
        auto reached = std::make_shared<std::promise<void>>();
        auto is_reached = reached->get_future();
        loop.post([this, reached] {
            loop.timer().at(loop.now() + 1ms, [reached] { reached->set_value(); });
        });
        return is_reached.wait_for(bound) == std::future_status::ready;
    }
};

void limit_descriptors(rlim_t limit) {
    rlimit now{};
    ::getrlimit(RLIMIT_NOFILE, &now);
    now.rlim_cur = std::min(limit, now.rlim_max);
    ::setrlimit(RLIMIT_NOFILE, &now);
}

rlim_t next_descriptor() {
    const int fd = ::dup(0);
    ::close(fd);
    return static_cast<rlim_t>(fd);
}

void deny_epoll_wait() {
    deny(SYS_epoll_pwait2, EPERM);
    deny(SYS_epoll_pwait, EPERM);
#if defined(SYS_epoll_wait)
    deny(SYS_epoll_wait, EPERM);
#endif
}

/// In a copy of this process, with the ends of some children to watch. They are there first.
template <class Function>
void in_a_fork_with_children(Function holds) {
    if (cohort::test::under_tsan) {
        cohort::test::skip(cohort::test::no_threads_in_copies);
        return;
    }
    in_a_fork([&] {
        auto& children = *new std::array<watched, 2>;
        return holds(children[0], children[1]);
    });
}

}  // namespace

TEST_CASE("engine: a lost ring is replaced as soon as a descriptor is free") {
    if (cohort::test::under_asan) {
        cohort::test::skip(cohort::test::asan_needs_it);
        return;
    }
    if (!io_uring_body::make())
        return;
    in_a_fork_with_children([](watched& one, watched& two) {
        running_engine engine;
        bool works = engine.does([&] { one.begin(engine.reaper); });
        const auto before = cohort::base::open_descriptors();
        limit_descriptors(next_descriptor());
        works &= engine.does([] { deny(SYS_io_uring_enter, EPERM); });
        works &= engine.is_awake() && one.is_alive() && one.is_seen_to_end();
        works &= engine.does([&] { two.begin(engine.reaper); }) && two.is_alive();
        limit_descriptors(RLIM_INFINITY);
        const auto until = clock_type::now() + bound;
        while (cohort::base::open_descriptors() == before && clock_type::now() < until)
            works &= engine.is_awake();
        works &= cohort::base::open_descriptors() > before;  // epoll's
        return works && two.is_alive() && two.is_seen_to_end();
    });
}

TEST_CASE("engine: the engine goes on without a broken epoll") {
    in_a_fork_with_children([](watched& one, watched& two) {
        deny(SYS_io_uring_setup, ENOSYS);
        running_engine engine;
        bool works = engine.does([&] { one.begin(engine.reaper); });
        works &= engine.does(deny_epoll_wait);
        works &= engine.is_awake() && one.is_alive() && one.is_seen_to_end();
        works &= engine.does([&] { two.begin(engine.reaper); }) && two.is_seen_to_end();
        const int file = ::memfd_create("engine_test", MFD_CLOEXEC);
        works &= ::write(file, "text", 4) == 4;
        std::promise<int> read;
        std::array<std::byte, 8> buffer{};
        works &= engine.does(
            [&] { engine.loop.read(file, buffer, 1, [&](int got) { read.set_value(got); }); });
        return works && read.get_future().get() == 3 && buffer[0] == std::byte{'e'};
    });
}

TEST_CASE("engine: the end of a process is seen although epoll refuses to watch it") {
    for (const int error : {ENOSPC, ENOMEM})
        in_a_fork_with_children([error](watched& one, watched& two) {
            deny(SYS_io_uring_setup, ENOSYS);
            running_engine engine;
            bool works = engine.does([error] { deny(SYS_epoll_ctl, error); });
            works &= engine.does([&] {
                one.begin(engine.reaper);
                two.begin(engine.reaper);
            });
            return works && engine.is_awake() && one.is_alive() && two.is_seen_to_end() &&
                   one.is_alive() && one.is_seen_to_end();
        });
}

TEST_CASE("engine: an exit status that waitid refuses to tell is not taken for a stolen one") {
    if (cohort::test::under_tsan) {
        cohort::test::skip(cohort::test::no_threads_in_copies);
        return;
    }
    in_a_fork([] {
        auto& ending = *new child;
        auto& ended = *new std::promise<cohort::loop::reaped>;
        running_engine engine;
        bool works = engine.does([&] {
            engine.reaper.watch(ending.pidfd, {}, [&](const auto& end) { ended.set_value(end); });
            deny(SYS_waitid, EPERM);
        });
        ::kill(ending.pid, SIGKILL);
        auto end = ended.get_future();
        works &= end.wait_for(bound) == std::future_status::ready;
        const auto told = works ? end.get() : cohort::loop::reaped();
        return works && !told.status.known() && told.error == EPERM;
    });
}

}  // namespace engine_test
