// SPDX-License-Identifier: BSL-1.0
// A start that fails removes the directory of its logs.
#include "scratch.hpp"
#include "start_support.hpp"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <string>

namespace log_removal_test {

using namespace cohort::test;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

cohort::command shell(const std::string& script) { return cohort::command("sh", "-c", script); }

cohort::options logging(int size, const scratch_directory& directory, const std::string& run) {
    return cohort::options(size)
        .on_failure(cohort::on_failure::keep_going)
        .logs(cohort::logs(directory.file("logs")).run_id(run));
}

}  // namespace

TEST_CASE("log removal: a start that fails leaves nothing of them, so it can be tried again") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto fails_at_the_last = [](int index) {
        return index < 2 ? shell("echo text; exec sleep 1000")
                         : cohort::command("/no/such/program");
    };
    for (const auto flush : {10s, 0s}) {
        const auto run = fmt::format("flush{}", flush.count());
        const auto attempt = directory.file("logs/" + run + "/attempt_0");
        const auto how = logging(3, directory, run).flush_timeout(flush);
        (void)thrown_by<cohort::spawn_error>(cohort::command_for(fails_at_the_last), how);
        CHECK_FALSE(fs::exists(attempt));
        CHECK(ended(shell("echo first"), logging(2, directory, run)).success());
        CHECK(read_file(attempt + "/0/stdout.log") == "first\n");
    }
}

}  // namespace log_removal_test
