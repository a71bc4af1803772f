// SPDX-License-Identifier: BSL-1.0
// The directory of a group's logs, and what is removed of it when the start of the group fails.
#include "loop/runtime/runtime.hpp"
#include "output/streams/group_streams.hpp"
#include "output/targets/files.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"
#include "scratch.hpp"
#include "sys_support.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

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
              output::base_directories bases(-1);
              if (streams->prepare(bases) || streams->prepare_worker(0, 0, bases) ||
                  !fs::exists(job + "/attempt_0"))
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

TEST_CASE("made logs: a file is written in the directory that was made, wherever it is") {
    const scratch_directory directory;
    const auto attempt = directory.file("run/attempt_0");
    output::log_directory logs;
    REQUIRE_FALSE(logs.make(nullptr, attempt));
    fs::create_directories(directory.file("others/0"));
    std::error_code error;
    CHECK(logs.open(0, 0, "error.json", error));
    CHECK(fs::exists(attempt + "/0/error.json"));

    fs::rename(directory.file("run"), directory.file("moved"));
    fs::create_directory_symlink(directory.file("others"), directory.file("run"));
    CHECK(logs.open_beside("report.json", error));
    CHECK(fs::exists(directory.file("moved/report.json")));
    CHECK(logs.open(0, 1, "error.json", error));
    CHECK(fs::exists(directory.file("moved/attempt_0/1/error.json")));

    fs::create_directory_symlink(directory.file("others"), directory.file("moved/attempt_0/2"));
    CHECK_FALSE(logs.open(0, 2, "error.json", error));
    CHECK(error == std::errc::not_a_directory);
    directory.write("others/precious", "text");
    fs::create_symlink(directory.file("others/precious"),
                       directory.file("moved/attempt_0/1/link.json"));
    CHECK_FALSE(logs.open(0, 1, "link.json", error));
    CHECK(error == std::errc::too_many_symbolic_link_levels);
    CHECK(read_file(directory.file("others/precious")) == "text");
    CHECK_FALSE(fs::exists(directory.file("others/0/error.json")));
}

TEST_CASE("made logs: a directory that was removed is not made again") {
    const scratch_directory directory;
    const auto attempt = directory.file("run/attempt_0");
    output::log_directory logs;
    REQUIRE_FALSE(logs.make(nullptr, attempt));
    std::error_code error;
    CHECK(logs.open(0, 0, "error.json", error));
    logs.remove(0, 1);
    CHECK_FALSE(fs::exists(attempt));
    CHECK_FALSE(logs.open(0, 0, "error.json", error));
    CHECK(error == std::errc::no_such_file_or_directory);
    CHECK_FALSE(fs::exists(attempt));

    output::log_directory next;  // of the same path
    REQUIRE_FALSE(next.make(nullptr, attempt));
    logs.remove(0, 1);
    CHECK(fs::exists(attempt));
    CHECK(next.make(nullptr, attempt) == std::errc::file_exists);
}

TEST_CASE("made logs: hosts that share a directory make it together, and a second run fails") {
    const scratch_directory directory;
    const auto attempt = directory.file("run/attempt_0");
    output::log_directory alpha;
    REQUIRE_FALSE(alpha.make(nullptr, attempt, {{0, 2}}));
    output::log_directory beta;
    REQUIRE_FALSE(beta.make(nullptr, attempt, {{4, 2}}));
    std::error_code error;
    CHECK(beta.open(0, 5, "error.json", error));
    for (const auto& [first, count] : {std::pair(0, 1), {2, 5}, {5, 1}}) {
        output::log_directory next;
        CHECK(next.make(nullptr, attempt, {{first, count}}) == std::errc::file_exists);
        next.remove(first, static_cast<std::size_t>(count));
    }
    CHECK(fs::exists(attempt + "/5/error.json"));
    CHECK_FALSE(fs::exists(attempt + "/2"));
    alpha.remove(0, 2);
    CHECK(fs::exists(attempt + "/4"));
    beta.remove(4, 2);
    CHECK_FALSE(fs::exists(attempt));
}

TEST_CASE("made logs: what stands beside a directory of hosts makes the one above it") {
    const scratch_directory directory;
    output::log_directory logs;
    logs.expect(directory.file("logs/run/attempt_0"));
    std::error_code error;
    CHECK(logs.open_beside("report.json", error));
    CHECK(fs::exists(directory.file("logs/run/report.json")));
    CHECK_FALSE(logs.open_beside("report.json", error));  // of an earlier run
    CHECK(error == std::errc::file_exists);
    CHECK_FALSE(fs::exists(directory.file("logs/run/attempt_0")));
}

}  // namespace made_logs_test
