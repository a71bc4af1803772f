// SPDX-License-Identifier: BSL-1.0
// What cannot be: each gets an error that says what, on whom and why, and leaves nothing.
#include "methods.hpp"
#include "start_support.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>

namespace bad_input_test {

/// Only even values are understood in a worker, only those below 100 can leave.
struct picky {
    int value = 0;
};
void to_json(nlohmann::json& j, const picky& p) {
    if (p.value >= 100)
        throw std::range_error("too large to be told");
    j = p.value;
}
void from_json(const nlohmann::json& j, picky& p) {
    p.value = j.get<int>();
    if (p.value % 2 != 0)
        throw std::domain_error("an odd value");
}

/// Ends the process that decodes it.
struct leaving {};
void to_json(nlohmann::json& j, const leaving&) { j = nullptr; }
void from_json(const nlohmann::json&, leaving&) { std::exit(0); }

using namespace cohort::test;
using namespace std::chrono_literals;

namespace {

int takes_picky(int, const std::string&, picky p, const std::vector<int>&) { return p.value; }
picky gives_picky(int, int value) { return {value}; }
int gives_int(int index) { return index; }
void gives_nothing(int) {}
int leaves(int) { std::exit(0); }
void takes_leaving(int, bad_input_test::leaving) {}

/// The start fails like this, before or at worker `index`.
template <class Work>
void check_refused(Work work, cohort::options how, std::errc code, int index,
                   const std::string& stage, const std::string& text) {
    const auto error = thrown_by<cohort::spawn_error>(std::move(work), std::move(how));
    CAPTURE(error.what());
    CHECK(error.code() == code);
    CHECK(error.code().category() == std::system_category());
    CHECK(error.error_index() == index);
    CHECK(error.stage() == stage);
    CHECK(std::string(error.what()) == text);
}

template <class T>
std::string why_no_result(const cohort::outcome& worker) {
    try {
        (void)worker.result<T>();
    } catch (const cohort::result_error& e) {
        return e.what();
    }
    return "there is one";
}

}  // namespace

TEST_CASE("bad input: an unknown program is a spawn_error") {
    const leak_guard guard;
    // A directory on PATH that may not be searched makes it "Permission denied", as for execvp(3).
    const auto how = [](int size) { return cohort::options(size).env("PATH", "/usr/bin:/bin"); };
    check_refused(cohort::command("trian.py"), how(4), std::errc::no_such_file_or_directory, 0,
                  "exec", "exec(\"trian.py\"): No such file or directory (worker 0)");
    check_refused(cohort::command("./trian.py", "--lr", 1), how(1),
                  std::errc::no_such_file_or_directory, 0, "exec",
                  "exec(\"./trian.py\"): No such file or directory (worker 0)");
    const auto only_three_is_bad = [](int index) {
        return index == 3 ? cohort::command("trian.py") : cohort::command("sleep", 1000);
    };
    check_refused(cohort::command_for(only_three_is_bad), how(5),
                  std::errc::no_such_file_or_directory, 3, "exec",
                  "exec(\"trian.py\"): No such file or directory (worker 3)");
}

TEST_CASE("bad input: a program that cannot be executed is a spawn_error") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto refused = [&](const std::string& program, std::errc code, const char* why) {
        check_refused(cohort::command(program), 2, code, 0, "exec",
                      fmt::format("exec(\"{}\"): {} (worker 0)", program, why));
    };
    refused(directory.path(), std::errc::permission_denied, "Permission denied");
    refused(directory.write("text", "#!/bin/sh\n"), std::errc::permission_denied,
            "Permission denied");
    refused(directory.file("text") + "/below", std::errc::not_a_directory, "Not a directory");
    refused(directory.write("lost", "#!/no/such/interpreter\n", 0755),
            std::errc::no_such_file_or_directory, "No such file or directory");
    // No shell takes over what the kernel cannot run.
    refused(directory.write("script", "echo a script without its first line\n", 0755),
            std::errc::executable_format_error, "Exec format error");
    refused(directory.write("empty", "", 0755), std::errc::executable_format_error,
            "Exec format error");
}

TEST_CASE(
    "bad input: a program on PATH that may not be executed is reported as denied, not as missing") {
    const leak_guard guard;
    const scratch_directory directory;
    directory.write("tool", "#!/bin/sh\n", 0644);
    check_refused(
        cohort::command("tool"), cohort::options(1).env("PATH", directory.path() + ":/no/such"),
        std::errc::permission_denied, 0, "exec", "exec(\"tool\"): Permission denied (worker 0)");
}

TEST_CASE("bad input: a working directory that does not exist, or is no directory, is an error") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto file = directory.write("file", "");
    check_refused(cohort::command("true"), cohort::options(3).working_directory("/no/such"),
                  std::errc::no_such_file_or_directory, 0, "chdir",
                  "chdir(\"/no/such\"): No such file or directory (worker 0)");
    check_refused(cohort::function<gives_int>(), cohort::options(3).working_directory(file),
                  std::errc::not_a_directory, 0, "chdir",
                  fmt::format("chdir(\"{}\"): Not a directory (worker 0)", file));
}

TEST_CASE("bad input: a standard stream's file that cannot be opened is an error") {
    const leak_guard guard;
    check_refused(cohort::command("true"), cohort::options(1).stdin_from("/no/such"),
                  std::errc::no_such_file_or_directory, 0, "stdin",
                  "open(\"/no/such\"): No such file or directory (worker 0)");
    check_refused(cohort::function<gives_int>(), cohort::options(2).stdout_to("/proc/none/file"),
                  std::errc::no_such_file_or_directory, 0, "stdout",
                  "open(\"/proc/none/file\"): No such file or directory (worker 0)");
    const auto second = [](int index) {
        cohort::command work("sleep", 1000);
        return index == 1 ? work.stderr_to("/tmp") : work;
    };
    check_refused(cohort::command_for(second), 3, std::errc::is_a_directory, 1, "stderr",
                  "open(\"/tmp\"): Is a directory (worker 1)");
}

TEST_CASE("bad input: a descriptor that is closed or negative is an error") {
    const leak_guard guard;
    try {
        cohort::options(1).fd(99'999, 5);
        FAIL_CHECK("it was taken");
    } catch (const std::system_error& e) {
        CHECK(e.code() == std::errc::bad_file_descriptor);
        CHECK(std::string(e.what()) == "cohort: fd: descriptor 99999: Bad file descriptor");
    }
    CHECK_THROWS_AS(cohort::options(1).fd(0, -1), std::invalid_argument);
    check_refused(cohort::command("true"), cohort::options(1).fd(0, 2'000'000'000),
                  std::errc::bad_file_descriptor, 0, "redirect",
                  "descriptor 2000000000: Bad file descriptor (worker 0)");
}

TEST_CASE("bad input: a NUL in a text is refused") {
    const leak_guard guard;
    const std::string text("a\0b", 3);
    CHECK_THROWS_WITH_AS(cohort::command("echo", text),
                         "cohort: an argument of a command, \"a\", has a NUL at position 1",
                         std::invalid_argument);
    CHECK_THROWS_AS(cohort::command("echo").arg(text), std::invalid_argument);
    CHECK_THROWS_AS(cohort::command("echo").args(std::vector{text}), std::invalid_argument);
    CHECK_THROWS_AS(cohort::command{text}, std::invalid_argument);
    CHECK_THROWS_AS(cohort::command(""), std::invalid_argument);
    CHECK_THROWS_WITH_AS(cohort::options(1).env("NAME", text),
                         "cohort: the value of the variable NAME, \"a\", has a NUL at position 1",
                         std::invalid_argument);
    CHECK_THROWS_AS(cohort::options(1).env(text, "x"), std::invalid_argument);
    CHECK_THROWS_AS(cohort::options(1).env("A=B", "x"), std::invalid_argument);
    CHECK_THROWS_AS(cohort::options(1).env("", "x"), std::invalid_argument);
    CHECK_THROWS_AS(cohort::options(1).working_directory(text), std::invalid_argument);
    CHECK_THROWS_AS(cohort::options(1).stdin_from(text), std::invalid_argument);
    CHECK_THROWS_AS(cohort::options(1).stdout_to(""), std::invalid_argument);
}

TEST_CASE("bad input: more environment or arguments than the kernel takes is an error") {
    const leak_guard guard;
    const std::string large(200'000, 'x');  // one string may have 128 KiB
    check_refused(cohort::command("true"), cohort::options(2).env("LARGE", large),
                  std::errc::argument_list_too_long, 0, "exec",
                  "exec(\"true\"): Argument list too long (worker 0)");
    check_refused(cohort::command("true", large), 2, std::errc::argument_list_too_long, 0, "exec",
                  "exec(\"true\"): Argument list too long (worker 0)");
    check_refused(cohort::command("/bin/true").args(std::vector(100, std::string(100'000, 'y'))), 2,
                  std::errc::argument_list_too_long, 0, "exec",
                  "exec(\"/bin/true\"): Argument list too long (worker 0)");
    if (default_method() != cohort::start_method::spawn)
        return;  // functions are not executed here
    const auto error = thrown_by<cohort::spawn_error>(cohort::function<gives_int>(),
                                                      cohort::options(2).env("LARGE", large));
    CHECK(error.code() == std::errc::argument_list_too_long);
    CHECK(error.stage() == "exec");
}

TEST_CASE("bad input: negative numbers, negative durations and unknown signals are refused") {
    CHECK_THROWS_WITH_AS(cohort::options(-1),
                         "cohort: nprocs: the number of workers is negative (-1)",
                         std::invalid_argument);
    CHECK_THROWS_AS(cohort::options(2).nprocs(-5), std::invalid_argument);
    CHECK_THROWS_AS(cohort::options(2).notice_period(-1ns), std::invalid_argument);
    CHECK_THROWS_AS(cohort::options(2).grace_period(-0.5s), std::invalid_argument);
    CHECK_THROWS_AS(cohort::options(2).kill_timeout(-1h), std::invalid_argument);
    CHECK_THROWS_AS(cohort::options(2).kill_timeout(std::chrono::duration<double>(NAN)),
                    std::invalid_argument);
    CHECK_THROWS_AS(cohort::options(2).stop_signal(0), std::invalid_argument);
    CHECK_THROWS_AS(cohort::options(2).stop_signal(65), std::invalid_argument);
    CHECK_THROWS_AS(cohort::options(2).parent_death_signal(-1), std::invalid_argument);
    CHECK_THROWS_AS(cohort::options(2).success_codes(0, 256), std::invalid_argument);
    CHECK_THROWS_AS(cohort::options(2).success_codes(-1), std::invalid_argument);
}

TEST_CASE("bad input: an argument that cannot be decoded is named by its position and type") {
    const leak_guard guard;
    if (default_method() == cohort::start_method::fork)
        return skip("a copy of this process needs no encoding");
    const auto thrown = thrown_by<cohort::process_raised_exception>(
        cohort::function<takes_picky>("text", picky{3}, std::vector{1, 2}), 1);
    CHECK(thrown.error_index() == 0);
    CHECK(thrown.error().type == "cohort::codec_error");
    CHECK(thrown.error().message ==
          "argument 2 of 3 (bad_input_test::picky) could not be decoded: an odd value");
    CHECK(ended(cohort::function<takes_picky>("text", picky{4}, std::vector{1, 2}), 1)
              .outcomes.at(0)
              .result<int>() == 4);
}

TEST_CASE("bad input: a worker that ends while its arguments are decoded has failed") {
    const leak_guard guard;
    if (default_method() == cohort::start_method::fork)
        return skip("a copy of this process needs no encoding");
    const auto thrown = thrown_by<cohort::process_exited_exception>(
        cohort::function<takes_leaving>(bad_input_test::leaving{}), 1);
    CHECK(thrown.exit_code() == 0);
    CHECK(std::string(thrown.what()) == "process 0 terminated with exit code 0\n"
                                        "ended while its arguments were decoded (exit code 0)");
}

GROUP_TEST("bad input: an argument that cannot be encoded is what spawn throws") {
    if (default_method() == cohort::start_method::fork)
        co_return skip("a copy of this process needs no encoding");
    auto start =
        cohort::spawn(cohort::function<takes_picky>("text", picky{100}, std::vector{1}), 1);
    CHECK_THROWS_WITH_AS(
        (void)co_await std::move(start),
        "argument 2 of 3 (bad_input_test::picky) could not be encoded: too large to be told",
        cohort::codec_error);
}

TEST_CASE("bad input: a result that cannot be encoded is the worker's error") {
    const leak_guard guard;
    const auto thrown =
        thrown_by<cohort::process_raised_exception>(cohort::function<gives_picky>(100), 1);
    CHECK(thrown.error().message ==
          "the result (bad_input_test::picky) could not be encoded: too large to be told");
    // One that cannot be decoded is reported to who asks for it.
    const auto report = ended(cohort::function<gives_picky>(7), 1);
    CHECK(report.success());
    CHECK(why_no_result<picky>(report.outcomes.at(0)) ==
          "the result of worker 0 (bad_input_test::picky) could not be decoded: an odd value");
}

TEST_CASE("bad input: reading a missing result, or one of another type, is an error") {
    const leak_guard guard;
    const auto number = ended(cohort::function<gives_int>(), 2);
    CHECK(number.outcomes.at(1).has_result());
    CHECK(why_no_result<int>(number.outcomes.at(1)) == "there is one");
    CHECK(why_no_result<long>(number.outcomes.at(1)) == "worker 1 returned int, not long");
    CHECK(why_no_result<std::vector<std::string>>(number.outcomes.at(0))
              .rfind("worker 0 returned int, not std::vector<std::string", 0) == 0);

    const auto nothing = ended(cohort::function<gives_nothing>(), 1).outcomes.at(0);
    CHECK_FALSE(nothing.has_result());
    CHECK(why_no_result<int>(nothing) == "worker 0 has no result: its function returned void");
    const auto left = ended(cohort::function<leaves>(), 1).outcomes.at(0);
    CHECK(left.success());
    CHECK_FALSE(left.has_result());
    CHECK(why_no_result<int>(left) ==
          "worker 0 has no result: its function did not return (exited, exit code 0)");
    const auto program = ended(cohort::command("true")).outcomes.at(0);
    CHECK_FALSE(program.has_result());
    CHECK(why_no_result<int>(program) == "worker 0 has no result: it is a command");
}

}  // namespace bad_input_test
