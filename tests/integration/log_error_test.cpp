// SPDX-License-Identifier: BSL-1.0
// The error.json of options::logs(), where something stands in its place.
#include "silent_file_system.hpp"
#include "start_support.hpp"
#include "watchdog.hpp"

#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

namespace log_error_test {

using namespace cohort::test;

namespace {

cohort::command shell(const std::string& script) { return cohort::command("sh", "-c", script); }

cohort::options logging(const scratch_directory& directory, const std::string& run) {
    return cohort::options(1)
        .on_failure(cohort::on_failure::keep_going)
        .logs(cohort::logs(directory.file("logs")).run_id(run));
}

void mounts_and_throws(int, const std::string& from, const std::string& to) {
    if (::mount(from.c_str(), to.c_str(), nullptr, MS_BIND, nullptr) != 0)
        throw std::system_error(errno, std::generic_category(), "mount");
    throw std::runtime_error("m");
}

}  // namespace

TEST_CASE("log error: what is no regular file is not written, and the note says so") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto file = directory.file("logs/job42/attempt_0/0/error.json");
    const auto error = "; echo '{\"message\":\"m\"}' > $COHORT_ERROR_FILE; exit 1";
    const auto fifo = directory.file("fifo");
    REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
    const open_file reader(fifo, O_RDWR);
    const auto report =
        ended(shell("ln " + fifo + " " + file + error), logging(directory, "job42"));
    CHECK(report.outcomes.at(0).note() == file + " is no regular file");

    const auto precious = directory.write("precious", "text");
    const auto link = directory.file("logs/link/attempt_0/0/error.json");
    const auto linked =
        ended(shell("ln -s " + precious + " " + link + error), logging(directory, "link"));
    CHECK(linked.outcomes.at(0).note().starts_with(link + ": "));
    CHECK(read_file(precious) == "text");
}

TEST_CASE("log error: a file whose disk does not answer takes no files of other groups") {
    const leak_guard guard;
    const scratch_directory directory;
    const scratch_directory place;
    const auto silent = mount_or_skip(place.path());
    if (!silent)
        return;
    const auto error = "echo '{\"message\":\"m\"}' > $COHORT_ERROR_FILE; exit 1";
    const auto own = directory.file("logs/one/attempt_0/0");
    const auto file = own + "/error.json";
    const auto one = ended(cohort::function<mounts_and_throws>(place.path(), own),
                           logging(directory, "one").flush_timeout(std::chrono::milliseconds(1)));
    CHECK(::umount2(own.c_str(), MNT_DETACH) == 0);
    CHECK(one.outcomes.at(0).note().starts_with(file + " is not yet written"));
    const auto two = ended(shell(error), logging(directory, "two").flush_timeout(generous_bound()));
    CHECK(two.outcomes.at(0).note().empty());
    CHECK_FALSE(read_file(directory.file("logs/two/attempt_0/0/error.json")).empty());
    CHECK_FALSE(read_file(directory.file("logs/two/report.json")).empty());
}

}  // namespace log_error_test
