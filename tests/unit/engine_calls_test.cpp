// SPDX-License-Identifier: BSL-1.0
// Calls that hang on the loop's thread, and the thread that takes over. An engine never ends: each
// case has a process of its own.
#include "loop/engine/engine.hpp"
#include "loop/runtime/runtime.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"
#include "sys_support.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace engine_calls_test {

using namespace cohort;
using namespace cohort::test;

namespace {

constexpr auto bound = std::chrono::milliseconds(bound_ms);

/// A loop with a call that hangs until its pipe is written to.
struct hung_loop {
    loop::engine& loop = *new loop::engine;
    pipe_ends release = make_pipe();
    std::promise<void> hangs;
    std::promise<void> is_over;
    std::string order;  // of what has run on the loop

    void start() {
        loop.start();
        loop.post([this] {
            loop.call(
                [this] {
                    hangs.set_value();
                    char byte = 0;
                    return static_cast<int>(::read(release.reader.get(), &byte, 1));
                },
                [this](int result) {
                    order += std::to_string(result);
                    is_over.set_value();
                });
            order += 'a';
        });
        hangs.get_future().wait();
    }
    bool take_over() { return loop.take_over_if_hung(std::chrono::steady_clock::now()); }
    void end_call() { (void)!::write(release.writer.get(), "x", 1); }
    /// @return whether `task` ran on the loop
    bool does(std::function<void()> task) {
        auto done = std::make_shared<std::promise<void>>();
        auto is_done = done->get_future();
        loop.post([task = std::move(task), done] {
            task();
            done->set_value();
        });
        return is_done.wait_for(bound) == std::future_status::ready;
    }
};

template <class Body>
void in_a_process(Body body) {
    if (under_tsan)
        return skip(no_threads_in_copies);
    CHECK(in_fork([&] {
              hung_loop& hung = *new hung_loop;
              hung.start();
              return body(hung) ? 0 : 1;
          }) == 0);
}

}  // namespace

TEST_CASE("engine calls: another thread takes over a loop whose call hangs") {
    in_a_process([](hung_loop& hung) {
        std::promise<void> timer;
        std::promise<void> readable;
        auto pipe = make_pipe();
        (void)!::write(pipe.writer.get(), "x", 1);
        hung.loop.post([&] {
            hung.order += 'b';
            hung.loop.timer().at(std::chrono::steady_clock::now(), [&] { timer.set_value(); });
            hung.loop.watch_readable(pipe.reader.get(), [&] { readable.set_value(); });
        });
        bool well = hung.take_over();
        well &= timer.get_future().wait_for(bound) == std::future_status::ready;
        well &= readable.get_future().wait_for(bound) == std::future_status::ready;
        hung.end_call();
        well &= hung.is_over.get_future().wait_for(bound) == std::future_status::ready;
        return well && hung.does([] {}) && hung.order == "ab1";
    });
}

TEST_CASE("engine calls: what was watched before the call hung is watched after it") {
    in_a_process([](hung_loop& hung) {
        auto pipe = make_pipe();
        std::promise<void> readable;
        hung.end_call();
        bool well = hung.is_over.get_future().wait_for(bound) == std::future_status::ready;
        std::promise<void> hangs;
        well &= hung.does([&] {
            hung.loop.watch_readable(pipe.reader.get(), [&] { readable.set_value(); });
            hung.loop.call(
                [&] {
                    hangs.set_value();
                    char byte = 0;
                    return static_cast<int>(::read(hung.release.reader.get(), &byte, 1));
                },
                [](int) {});
        });
        hangs.get_future().wait();
        well &= hung.take_over();
        (void)!::write(pipe.writer.get(), "x", 1);
        return well && readable.get_future().wait_for(bound) == std::future_status::ready;
    });
}

TEST_CASE("engine calls: a take-over leaves no descriptor and no thread once the call is over") {
    in_a_process([](hung_loop& hung) {
        const auto count = [](const char* directory) {
            std::size_t found = 0;
            for (const auto& each : std::filesystem::directory_iterator(directory))
                found += !each.path().empty();
            return found;
        };
        const auto descriptors = count("/proc/self/fd");
        const auto threads = count("/proc/self/task");
        bool well = hung.take_over() && hung.does([] {});
        hung.end_call();
        well &= hung.is_over.get_future().wait_for(bound) == std::future_status::ready;
        const auto until = std::chrono::steady_clock::now() + bound;
        const auto is_as_before = [&] {
            return count("/proc/self/fd") == descriptors && count("/proc/self/task") == threads;
        };
        while (!is_as_before() && std::chrono::steady_clock::now() < until)
            std::this_thread::yield();
        return well && is_as_before();
    });
}

TEST_CASE("engine calls: a call that is over in time stays on its thread") {
    in_a_process([](hung_loop& hung) {
        bool well = hung.loop.take_over_if_hung({});
        hung.end_call();
        well &= hung.is_over.get_future().wait_for(bound) == std::future_status::ready;
        well &= hung.does([] {}) && !hung.take_over();
        return well && hung.order == "a1";
    });
}

TEST_CASE("engine calls: after a call has hung, no call waits for another one that hangs") {
    if (under_tsan)
        return skip(no_threads_in_copies);
    CHECK(in_fork([] {
              hung_loop& hung = *new hung_loop;
              hung.loop.on_hung_call([](loop::task call) { std::thread(call).detach(); });
              hung.start();
              std::promise<void> second;
              std::promise<bool> third;
              hung.loop.post([&] {
                  hung.loop.call(
                      [&] {
                          second.set_value();
                          char byte = 0;
                          return static_cast<int>(::read(hung.release.reader.get(), &byte, 1));
                      },
                      [](int) {});
                  hung.loop.call([] { return 3; },
                                 [&](int result) {
                                     third.set_value(result == 3 && loop::engine::is_this_thread());
                                 });
              });
              bool well = hung.take_over();
              well &= second.get_future().wait_for(bound) == std::future_status::ready;
              auto is_made = third.get_future();
              well &= is_made.wait_for(bound) == std::future_status::ready && is_made.get();
              return well && hung.does([] {}) ? 0 : 1;
          }) == 0);
}

TEST_CASE("engine calls: a fork does not wait for a call that hangs") {
    in_a_process([](hung_loop& hung) {
        hung.loop.turn().lock();  // a call that held the turn would hold this up for ever
        hung.loop.turn().unlock();
        return true;
    });
}

TEST_CASE("engine calls: forks one after the other do not keep the loop from its turn") {
    if (under_tsan)
        return skip(no_threads_in_copies);
    CHECK(in_fork([] {
              auto& runtime = loop::runtime::for_spawn();
              std::atomic<bool> goes_on = true;
              const auto fork_on = [&goes_on] {
                  while (goes_on) {
                      const pid_t copy = ::fork();
                      if (copy == 0)
                          ::_exit(0);
                      ::waitpid(copy, nullptr, 0);
                  }
              };
              std::vector<std::jthread> forking;
              for (int thread = 0; thread < 32; ++thread)
                  forking.emplace_back(fork_on);
              for (int turn = 0; turn < 20; ++turn) {
                  std::promise<void> done;
                  runtime.loop().post([&done] { done.set_value(); });
                  if (done.get_future().wait_for(bound) != std::future_status::ready)
                      ::_exit(1);
              }
              goes_on = false;
              return 0;
          }) == 0);
}

}  // namespace engine_calls_test
