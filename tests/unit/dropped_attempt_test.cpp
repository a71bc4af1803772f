// SPDX-License-Identifier: BSL-1.0
// A worker whose next attempt is dropped while the text of the one before is on its way.
#include "loop/runtime/runtime.hpp"
#include "output/streams/group_streams.hpp"
#include "output/targets/call_threads.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"
#include "scratch.hpp"
#include "sys_support.hpp"

#include <cohort/options.hpp>
#include <cohort/sinks.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <string>

namespace dropped_attempt_test {

using namespace cohort;
using namespace cohort::test;

namespace {

/// The streams of one command that may start again, and whose files have names for each attempt.
std::shared_ptr<output::group_streams> writing_into(const std::string& directory) {
    auto& runtime = loop::runtime::for_spawn();
    output::start_output(runtime);
    detail::spawn_plan plan;
    plan.settings = detail::options_access::settings(
        options(1).restart(1).stdout_to(file(directory + "/{attempt}"), capture()));
    plan.programs = {{{"true"}, {}}};
    output::group_streams::settings how{};
    how.flush_timeout = std::chrono::milliseconds(bound_ms);
    how.start_again = true;
    return std::make_shared<output::group_streams>(runtime, output::make_routes(plan, {}), how);
}

}  // namespace

TEST_CASE("dropped attempt: the text of the one before comes into its file") {
    if (under_tsan)
        return skip(no_threads_in_copies);
    const scratch_directory directory;
    CHECK(in_fork([&] {
              const auto streams = writing_into(directory.path());
              output::base_directories bases(-1);
              if (streams->prepare(bases) || streams->prepare_worker(0, 0, bases))
                  return 1;
              base::unique_fd worker(::dup(streams->sources_of(0)[STDOUT_FILENO].fd));
              streams->close_ends_of_started(0);
              streams->worker_started(0, [](stream, std::uint64_t) {});
              streams->worker_not_started(0, {});
              if (::write(worker.get(), "text\n", 5) != 5)
                  return 2;
              worker.reset();
              std::promise<std::string> note;
              std::string captured;
              streams->worker_ended(
                  0, [&](const output::stream_end& end) { captured = end.out.text(); },
                  [&](const std::string& text) { note.set_value(text); });
              auto written = note.get_future();
              if (written.wait_for(std::chrono::milliseconds(bound_ms)) !=
                  std::future_status::ready)
                  return 3;
              if (written.get() != "" || captured != "text\n")
                  return 4;
              return read_file(directory.file("0")) == captured ? 0 : 5;
          }) == 0);
}

}  // namespace dropped_attempt_test
