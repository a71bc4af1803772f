// SPDX-License-Identifier: BSL-1.0
#include "loop/threads/background_thread.hpp"

#include "loop/runtime/runtime.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"
#include "sys_support.hpp"

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <future>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

namespace background_thread_test {

using namespace cohort;
using namespace cohort::test;

namespace {

/// Keeps a thread busy for ever. Returns when the work has begun.
void keep_busy(loop::runtime& runtime, loop::background_thread& worker) {
    std::promise<void> begun;
    runtime.loop().post([&] {
        worker.run(
            [&begun] {
                begun.set_value();
                for (;;)
                    ::pause();
            },
            [] {});
    });
    begun.get_future().wait();
}

constexpr std::size_t large = loop::background::large_text + 1;

}  // namespace

TEST_CASE("background thread: what is large to parse does not hold up what is not") {
    if (under_tsan)
        return skip(no_threads_in_copies);
    CHECK(in_fork([] {
              auto& runtime = loop::runtime::for_spawn();
              keep_busy(runtime, runtime.parsing(large));
              std::promise<void> parsed;
              runtime.parsing(large - 1).run([&] { parsed.set_value(); }, [] {});
              const auto bound = std::chrono::milliseconds(bound_ms);
              return parsed.get_future().wait_for(bound) == std::future_status::ready ? 0 : 1;
          }) == 0);
}

TEST_CASE("background thread: a fork does not wait for work") {
    if (under_tsan)
        return skip(no_threads_in_copies);
    CHECK(in_fork([] {
              auto& runtime = loop::runtime::for_spawn();
              for (auto* each :
                   std::array{&runtime.parsing(), &runtime.parsing(large), &runtime.cgroups(),
                              &runtime.symbolizing(), &runtime.sweeping(), &runtime.freeing()})
                  keep_busy(runtime, *each);
              std::promise<void> forked;
              std::thread([&forked] {
                  const pid_t copy = ::fork();
                  if (copy == 0)
                      ::_exit(0);
                  ::waitpid(copy, nullptr, 0);
                  forked.set_value();
              }).detach();
              const auto bound = std::chrono::milliseconds(bound_ms);
              ::_exit(forked.get_future().wait_for(bound) == std::future_status::ready ? 0 : 1);
              return 0;
          }) == 0);
}

}  // namespace background_thread_test
