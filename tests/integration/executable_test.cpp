// SPDX-License-Identifier: BSL-1.0
// Function workers that execute another program than their host.
#include "known_functions.hpp"
#include "methods.hpp"
#include "start_support.hpp"

#include <stdexcept>
#include <string>

namespace executable_test {

using namespace cohort::test;

namespace {

int not_there(int index) { return index; }

cohort::options in_other_program(int workers = 1) {
    return cohort::options(workers).executable(COHORT_PROGRAM_OTHER_PROGRAM);
}

}  // namespace

TEST_CASE("executable: a function runs in the program, which finds it by its name") {
    const leak_guard guard;
    const auto report = ended(cohort::function<where_it_is>("worker"), in_other_program(2));
    REQUIRE_MESSAGE(report.success(), fmt::format("{}", report));
    CHECK(report.outcomes[0].result<std::string>() == "worker 0 other_program");
    CHECK(report.outcomes[1].result<std::string>() == "worker 1 other_program");
}

TEST_CASE("executable: a host that never calls worker_main can start functions by it") {
    const leak_guard guard;
    CHECK(printed_by(cohort::command(COHORT_PROGRAM_OTHER_PROGRAM, "host",
                                     COHORT_PROGRAM_OTHER_PROGRAM)) == "hosted 0 other_program\n");
}

TEST_CASE("executable: a function that the program lacks is told") {
    const leak_guard guard;
    const auto error = thrown_by<cohort::process_raised_exception>(cohort::function<not_there>(),
                                                                   in_other_program());
    CHECK(error.error().message.find("the program of executable() does not have the worker's "
                                     "function") != std::string::npos);
}

TEST_CASE("executable: a program that never calls worker_main is told") {
    const leak_guard guard;
    const auto how = cohort::options(1).executable("/bin/true");
    const auto error =
        thrown_by<cohort::process_exited_exception>(cohort::function<where_it_is>("x"), how);
    CHECK(std::string(error.what()).find("worker_main was not reached") != std::string::npos);
}

TEST_CASE("executable: a program that is not there fails the start") {
    const leak_guard guard;
    const auto error = thrown_by<cohort::spawn_error>(
        cohort::function<where_it_is>("x"), cohort::options(2).executable("/no/such/program"));
    CHECK(error.stage() == "exec");
    CHECK(std::string(error.what()) ==
          "exec(\"/no/such/program\"): No such file or directory (worker 0)");
}

TEST_CASE("executable: copies, which execute nothing, are refused") {
    have_server();
    const leak_guard guard;
    for (const auto method : all_methods) {
        if (method == cohort::start_method::spawn)
            continue;
        CAPTURE(method);
        const auto error = thrown_by<cohort::spawn_error>(cohort::function<where_it_is>("x"),
                                                          in_other_program().start_method(method));
        CHECK(error.stage() == "start_method");
        CHECK(error.code() == std::errc::not_supported);
    }
}

TEST_CASE("executable: it has no effect on commands") {
    const leak_guard guard;
    CHECK(ended(cohort::command("true"), in_other_program()).success());
}

TEST_CASE("executable: its path is absolute") {
    CHECK_THROWS_WITH_AS(cohort::options().executable("worker"),
                         "cohort: executable: \"worker\" is not an absolute path",
                         std::invalid_argument);
    CHECK_THROWS_AS(cohort::options().executable(""), std::invalid_argument);
}

}  // namespace executable_test
