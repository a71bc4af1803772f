// SPDX-License-Identifier: BSL-1.0
// Starts that fail half way, for want of something, and programs that are no workers.
#include "descriptor_limit.hpp"
#include "methods.hpp"
#include "start_support.hpp"

#include <cohort/errors.hpp>
#include <cohort/shared_array.hpp>

#include <algorithm>
#include <climits>
#include <csignal>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include <sys/stat.h>

namespace start_failure_test {

using namespace cohort::test;

namespace {

int nothing(int) { return 0; }

/// A program that writes its pid and says so by opening the FIFO; it would live on.
cohort::command first_worker(const scratch_directory& directory) {
    return cohort::command("sh", "-c",
                           "echo $$ > pid; : > fifo; trap '' TERM; while :; do sleep 1000; done")
        .working_directory(directory.path());
}

/// True when the worker that wrote its pid there is gone, and reaped.
bool is_gone(const scratch_directory& directory) {
    const auto pid = std::stoi(read_file(directory.file("pid")));
    return pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH;
}

void make_fifo(const scratch_directory& directory) {
    if (::mkfifo(directory.file("fifo").c_str(), 0600) != 0)
        throw std::system_error(errno, std::generic_category(), "mkfifo");
}

/// What the start of worker 1 throws; worker 0 runs by then, and has gone with it.
/// @param second  a command that fails after it has opened its standard input
cohort::spawn_error failure_of_second(cohort::command second) {
    const scratch_directory directory;
    make_fifo(directory);
    second.stdin_from(directory.file("fifo"));  // so it waits for worker 0
    const auto make = [&](int index) { return index == 1 ? second : first_worker(directory); };
    const auto error = thrown_by<cohort::spawn_error>(cohort::command_for(make), 3);
    CHECK(is_gone(directory));
    return error;
}

std::size_t open_descriptors() {
    return static_cast<std::size_t>(
               std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                             std::filesystem::directory_iterator())) -
           1;
}

/// The number that the next descriptor gets.
std::size_t next_descriptor() {
    const int next = ::dup(STDERR_FILENO);
    ::close(next);
    return static_cast<std::size_t>(next);
}

template <class Work>
void refuse_at_once(Work work) {
    const auto error = thrown_by<cohort::spawn_error>(std::move(work), INT_MAX);
    CHECK(error.code() == std::errc::too_many_files_open);
    CHECK(error.stage() == "limit");
    CHECK(std::string(error.what()).starts_with("2147483647 workers need 4294967294 descriptors"));
}

template <class Work>
void refuse_for_descriptors(Work work, std::size_t needed) {
    std::string text;
    std::size_t limit = 0;
    {
        const descriptor_limit few(open_descriptors() + 10);
        limit = few.limit();
        const auto error = thrown_by<cohort::spawn_error>(std::move(work), 64);
        CHECK(error.code() == std::errc::too_many_files_open);
        CHECK(error.error_index() == -1);
        CHECK(error.stage() == "limit");
        text = error.what();
    }
    CAPTURE(text);
    CHECK(text.rfind(fmt::format("64 workers need {} descriptors, ", needed), 0) == 0);
    CHECK(text.find(fmt::format(" of {} are in use: Too many open files", limit)) != text.npos);
}

/// Of starts that failed: each stage, and the first word of the error's text.
using stages = std::set<std::pair<std::string, std::string>>;

/// The first word of the error's text, for a start that lacked a descriptor.
std::string first_word(const cohort::spawn_error& error) {
    const std::string text = error.what();
    return text.substr(0, text.find_first_of(" (:"));
}

cohort::shared_value<int> shares(int) { return cohort::shared_value<int>(); }

/// The stages of starts with ever more descriptors, until one succeeds, and what each says failed.
stages failures_without_descriptors(cohort::start_method how) {
    stages seen;
    const auto one = cohort::options(1).start_method(how).stack_on_stop(true);
    const auto next = next_descriptor();
    for (std::size_t room = 0; room < 64; ++room) {
        const descriptor_limit few(next + room);
        try {
            run_coroutine(run_whole(cohort::function<shares>(), one));
            return seen;
        } catch (const cohort::spawn_error& error) {
            CHECK(error.code() == std::errc::too_many_files_open);
            seen.emplace(error.stage(), first_word(error));
        } catch (const std::system_error&) {  // Asio's, or the worker's
        } catch (const cohort::process_exception&) {
        }
    }
    FAIL("no start succeeds");
    return seen;
}

/// Lets starts fail again and again until all of `wanted` were seen, because a thread in the
/// background may have a descriptor in the moment that matters.
stages stages_without_descriptors(cohort::start_method how, const stages& wanted) {
    stages seen;
    for (int i = 0; i < 50 && !std::ranges::includes(seen, wanted); ++i)
        seen.merge(failures_without_descriptors(how));
    return seen;
}

/// What the forgetful host prints, sorted: its workers share its output.
std::vector<std::string> printed_by_forgetful(const char* what) {
    auto lines = lines_of(
        printed_by(cohort::command(COHORT_PROGRAM_FORGETFUL),
                   cohort::options(1).env("FORGETFUL", what).env("COHORT_FORCE", forced_tiers())));
    std::sort(lines.begin(), lines.end());
    return lines;
}

std::string not_reached(int exit_code) {
    return fmt::format("worker_main was not reached (exit code {}): call it first in main",
                       exit_code);
}

}  // namespace

TEST_CASE("start failure: when worker k cannot start, those before it are killed and reaped") {
    const leak_guard guard;
    const auto unknown = failure_of_second(cohort::command("./no-such-program"));
    CHECK(std::string(unknown.what()) ==
          "exec(\"./no-such-program\"): No such file or directory (worker 1)");
    CHECK(unknown.error_index() == 1);
    CHECK(unknown.stage() == "exec");

    const auto output = failure_of_second(cohort::command("true").stdout_to("/dev/full/"));
    CHECK(output.error_index() == 1);
    CHECK(output.stage() == "stdout");
}

TEST_CASE("start failure: a limit on open files is reported before the first worker exists") {
    const leak_guard guard;
    const scratch_directory directory;
    refuse_for_descriptors(cohort::command("touch", directory.file("started")), 128);
    const std::map<cohort::start_method, std::size_t> needed{
        {cohort::start_method::spawn, 129},
        {cohort::start_method::fork, 130},
        {cohort::start_method::forkserver, 132}};
    refuse_for_descriptors(cohort::function<nothing>(), needed.at(default_method()));
    CHECK_FALSE(std::filesystem::exists(directory.file("started")));
    CHECK(ended(cohort::command("true"), 64).success());
}

TEST_CASE("start failure: a group that just fits into the limit of open files starts") {
    const leak_guard guard;
    // The group, its arguments and the caller's directory, and three of Asio's with room for each
    // scratch.
    const descriptor_limit few(open_descriptors() + 2 * 8 + 2 + 6);
    CHECK(ended(cohort::command("true"), 8).success());
    CHECK(ended(cohort::function<nothing>(), 8).success());
}

TEST_CASE("start failure: the stage names the kind of descriptor that could not be had") {
    const leak_guard guard;
    CHECK(ended(cohort::function<nothing>(), 1).success());  // the library's threads are there
    const stages by_copies{
        {"memory file", "memfd_create"}, {"pipe", "pipe2"}, {"socket", "socketpair"}};
    const auto of_copies = stages_without_descriptors(cohort::start_method::fork, by_copies);
    CHECK(std::ranges::includes(of_copies, by_copies));
    const stages by_programs{{"pipe", "pipe2"}, {"socket", "socketpair"}};
    const auto of_programs = stages_without_descriptors(cohort::start_method::spawn, by_programs);
    CHECK(std::ranges::includes(of_programs, by_programs));
    for (const auto& [stage, what] : of_copies)
        CHECK((stage == "memory file") == (what == "memfd_create"));
}

TEST_CASE("start failure: a limit on processes ends the start at worker k, and nothing is left") {
    const leak_guard guard;
    if (::geteuid() != 0)
        return skip("needs root, to become a user with few processes");
    // Whom nobody else is, most likely: all processes of a user count for its limit.
    const int user = 30'000 + ::getpid() % 30'000;
    const scratch_directory directory;
    directory.open_to_all(std::filesystem::perms::others_all);
    const auto printed = lines_of(printed_by(cohort::command(
        COHORT_PROGRAM_OTHER_HOST, "few_processes", user, 8, 16, directory.path())));
    REQUIRE(printed.size() == 3);
    const std::string expected = "clone: Resource temporarily unavailable (worker ";
    REQUIRE(printed[0].rfind(expected, 0) == 0);
    const int index = std::stoi(printed[0].substr(expected.size()));
    CHECK(index > 0);
    CHECK(index < 8);
    CHECK(printed[1] == fmt::format("stage clone, error {}", EAGAIN));
    CHECK(printed[2] == "no children");
    // Their directory, too, though no thread can be started that would remove it.
    CHECK(std::filesystem::exists(directory.file("few")));
    CHECK_FALSE(std::filesystem::exists(directory.file("few/attempt_0")));
}

TEST_CASE("start failure: success_codes are the exit codes that are no failure") {
    const leak_guard guard;
    const cohort::command three("sh", "-c", "exit 3");
    CHECK(ended(three, cohort::options(1).success_codes(3)).success());
    const auto refused = ended(three, cohort::options(1).success_codes(0, 4));
    CHECK_FALSE(refused.success());
    CHECK(refused.outcomes.at(0).cause == cohort::cause::exited);
    CHECK(refused.outcomes.at(0).first_failure);
    // They stand in place of 0.
    CHECK_FALSE(ended(cohort::command("true"), cohort::options(1).success_codes(3)).success());
}

TEST_CASE("start failure: a program that has not called worker_main cannot start functions") {
    const leak_guard guard;
    for (const char* const method : {"", "forkserver"}) {
        const auto printed = lines_of(
            printed_by(cohort::command(COHORT_PROGRAM_FORGETFUL),
                       cohort::options(1).env("FORGETFUL", "never").env("COHORT_FORCE", method)));
        REQUIRE(printed.size() == 2);  // no worker has printed a line
        CHECK(printed[0].rfind("host: cohort: function workers execute this program again, but",
                               0) == 0);
        CHECK(printed[1] == "    cohort::worker_main(argc, argv);");
    }
}

TEST_CASE("start failure: a program that has not called worker_main can start forked copies") {
    const leak_guard guard;
    const auto printed = lines_of(
        printed_by(cohort::command(COHORT_PROGRAM_FORGETFUL),
                   cohort::options(1).env("FORGETFUL", "never").env("COHORT_FORCE", "fork")));
    REQUIRE(printed.size() == 3);
    CHECK(printed[0] == "worker 0: good, ");
    CHECK(printed[1] == "worker 1: good, ");
    CHECK(printed[2] == "host: nothing was thrown");
}

TEST_CASE(
    "start failure: a worker whose main does not reach worker_main gets a note that says so") {
    const leak_guard guard;
    for (const int code : {0, 2}) {
        const auto printed = printed_by_forgetful(code == 0 ? "main" : "usage");
        REQUIRE(printed.size() == 6);
        CHECK(printed[0].rfind("host: process ", 0) == 0);
        CHECK(printed[0].ends_with(fmt::format(" terminated with exit code {}", code)));
        CHECK(printed[1] == "main in a worker");
        CHECK(printed[2] == "main in a worker");
        for (int i = 0; i < 2; ++i)
            CHECK(printed[static_cast<std::size_t>(3 + i)] ==
                  fmt::format("worker {}: bad, exit code {}: {}", i, code, not_reached(code)));
        CHECK(printed[5] == not_reached(code));  // the last line of the exception's text
    }
}

TEST_CASE("start failure: a worker that did not reach worker_main cannot start groups") {
    const leak_guard guard;
    const auto printed = printed_by_forgetful("spawns");
    REQUIRE(printed.size() == 6);
    CHECK(printed[1] == "worker 0: bad, exit code 0: " + not_reached(0));
    CHECK(printed[2] == "worker 1: bad, exit code 0: " + not_reached(0));
    const std::string refusal =
        "worker: worker_main was not reached in this worker: call it first in main: ";
    CHECK(printed[3].rfind(refusal, 0) == 0);
    CHECK(printed[4].rfind(refusal, 0) == 0);
}

TEST_CASE("start failure: a static initialiser of a worker cannot start groups") {
    const leak_guard guard;
    const auto printed = printed_by_forgetful("static");
    REQUIRE(printed.size() == 3);
    CHECK(printed[0] == "host: nothing was thrown");
    for (std::size_t i = 0; i < 2; ++i)
        CHECK(
            printed[i + 1].rfind(fmt::format("worker {}: good, worker_main was not reached in this "
                                             "worker: call it first in main",
                                             i),
                                 0) == 0);
}

TEST_CASE("start failure: an impossible number of workers is refused before memory is allocated") {
    const leak_guard guard;
    refuse_at_once(cohort::command("true"));
    refuse_at_once(cohort::function<do_nothing>());
}

}  // namespace start_failure_test
