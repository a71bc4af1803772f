// SPDX-License-Identifier: BSL-1.0
// What a group removes of its logs when its start fails.
#include "loop/runtime/runtime.hpp"
#include "output/streams/group_streams.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"
#include "scratch.hpp"
#include "sys_support.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <memory>
#include <string>

namespace made_logs_test {

using namespace cohort;
using namespace cohort::test;
namespace fs = std::filesystem;

namespace {

/// The streams of one command, whose logs are in `directory`/job.
std::shared_ptr<output::group_streams> logging_into(const std::string& directory) {
    detail::spawn_plan plan;
    plan.settings.logs = {directory, "job"};
    plan.programs = {{{"true"}, {}}};
    return std::make_shared<output::group_streams>(loop::runtime::for_spawn(),
                                                   output::make_routes(plan, {}),
                                                   output::group_streams::settings{});
}

}  // namespace

// A worker may write above its own directory, and so replace it.
TEST_CASE("made logs: a directory that stands at their path is not touched") {
    if (under_tsan)
        return skip(no_threads_in_copies);
    const scratch_directory directory;
    const auto job = directory.file("logs/job");
    const auto moved = directory.file("logs/moved");
    for (const char* part : {"", "/attempt_0", "/attempt_0/0"})
        fs::create_directory(directory.file("others") + part);
    const auto others = directory.write("others/attempt_0/0/stdout.log", "precious");
    CHECK(in_fork([&] {
              const auto streams = logging_into(directory.file("logs"));
              if (streams->prepare(-1) || !fs::exists(job + "/attempt_0"))
                  return 1;
              fs::rename(job, moved);
              fs::create_directory_symlink(directory.file("others"), job);
              streams->remove_logs();
              if (read_file(others) != "precious" || !fs::exists(moved + "/attempt_0"))
                  return 2;
              fs::remove(job);
              fs::rename(moved, job);
              streams->remove_logs();
              return fs::exists(job + "/attempt_0") ? 3 : 0;
          }) == 0);
}

}  // namespace made_logs_test
