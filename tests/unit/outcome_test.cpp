// SPDX-License-Identifier: BSL-1.0
#include <cohort/detail/result.hpp>
#include <cohort/errors.hpp>
#include <cohort/format.hpp>
#include <cohort/host_errors.hpp>
#include <cohort/json.hpp>
#include <cohort/outcome.hpp>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <type_traits>
#include <typeinfo>

namespace outcome_test {

using cohort::outcome;
using cohort::detail::outcome_access;
using namespace std::chrono_literals;

namespace {

outcome ended(int index, cohort::cause cause, cohort::exit_status status) {
    outcome o;
    o.index = index;
    o.pid = 1000 + index;
    o.cause = cause;
    o.status = status;
    o.ended = o.started + 1500ms;
    o.usage.max_rss = 3 * 1024 * 1024 + 512 * 1024;
    return o;
}

outcome with_result(std::string type) {
    auto o = ended(2, cohort::cause::returned, cohort::exit_status::from_code(0));
    outcome_access::success(o) = true;
    outcome_access::result(o) = std::make_shared<const cohort::detail::result_bytes>(
        cohort::detail::result_bytes{std::move(type), {std::byte{7}}});
    return o;
}

template <class Exception>
void copies_quietly() {
    static_assert(std::is_nothrow_copy_constructible_v<Exception>);
    static_assert(std::is_nothrow_copy_assignable_v<Exception>);
}

}  // namespace

TEST_CASE("outcome: a result of the right type is read, any number of times and from copies") {
    const auto o = with_result(typeid(int).name());
    const auto copy = o;
    CHECK(o.has_result());
    CHECK(o.result<int>() == 7);
    CHECK(copy.result<int>() == 7);
}

TEST_CASE("outcome: a result that is not there says why") {
    CHECK_THROWS_WITH_AS(with_result(typeid(int).name()).result<long>(),
                         "worker 2 returned int, not long", cohort::result_error);
    CHECK_THROWS_WITH_AS(with_result(typeid(std::string).name()).result<double>(),
                         "worker 2 returned std::string, not double", cohort::result_error);
    const auto nothing = with_result("");
    CHECK_FALSE(nothing.has_result());
    CHECK_THROWS_WITH_AS(nothing.result<int>(),
                         "worker 2 has no result: its function returned void",
                         cohort::result_error);
    const auto exited = ended(1, cohort::cause::exited, cohort::exit_status::from_code(3));
    CHECK_THROWS_WITH_AS(
        exited.result<int>(),
        "worker 1 has no result: its function did not return (exited, exit code 3)",
        cohort::result_error);
    auto command = exited;
    outcome_access::is_command(command) = true;
    CHECK_THROWS_WITH_AS(command.result<int>(), "worker 1 has no result: it is a command",
                         cohort::result_error);
}

TEST_CASE("outcome: a type's name that a worker has told is quoted, not demangled") {
    const auto text_for = [](const std::string& type) -> std::string {
        try {
            return std::to_string(with_result(type).result<int>());
        } catch (const cohort::result_error& e) {
            return e.what();
        }
    };
    // x<x<a, a>, x<a, a> > and so on: each level doubles the text.
    constexpr int levels = 16;
    std::string doubling, ends;
    for (int i = 0; i < levels; ++i) {
        doubling += "1xI";
        ends += std::string("S") + "FGHIJKLMNOPQRSTUVWXYZ"[i] + "_E";
    }
    doubling += "1a" + ends;
    CHECK(text_for(doubling) == "worker 2 returned the type \"" + doubling + "\", not int");
    CHECK(text_for("N2my4typeE") == "worker 2 returned the type \"N2my4typeE\", not int");
    CHECK(text_for(std::string(1000, 'z')).size() < 400);
    CHECK(text_for("a\nb").find('\n') == std::string::npos);
    CHECK(text_for(typeid(std::string).name()) == "worker 2 returned std::string, not int");
    CHECK(text_for(typeid(std::vector<long>).name()) ==
          "worker 2 returned std::vector<long>, not int");
}

TEST_CASE("outcome: a report is a success when every worker's end is, or without workers") {
    cohort::report r;
    CHECK(r.success());
    r.outcomes = {with_result(""), with_result("")};
    CHECK(r.success());
    outcome_access::success(r.outcomes[1]) = false;
    CHECK_FALSE(r.success());
}

TEST_CASE("outcome: prints as one line, with the first line of its error") {
    auto o = ended(1, cohort::cause::raised, cohort::exit_status::from_code(1));
    CHECK(fmt::format("{}", o) == "worker 1 (pid 1001): raised, exit code 1, 1.500 s, 3.5 MiB");
    cohort::error_record error;
    error.type = "std::runtime_error";
    error.message = "cannot open\nmore";
    o.error = error;
    o.first_failure = true;
    CHECK(fmt::format("{}", o) == "worker 1 (pid 1001): raised, exit code 1, 1.500 s, 3.5 MiB: "
                                  "first failure: std::runtime_error: cannot open ...");
    CHECK(fmt::format("{:>9}|{}", o.cause, o.status) == "   raised|exit code 1");
}

TEST_CASE("outcome: copies share its error and its crash") {
    cohort::outcome one;
    one.error = cohort::error_record();
    one.crash = cohort::crash_record();
    const auto copy = one;
    CHECK(&*copy.error == &*one.error);
    CHECK(&*copy.crash == &*one.crash);
    CHECK(copy.error == one.error);
    one.error.reset();
    CHECK(copy.error.has_value());
    CHECK_THROWS_AS((void)one.error.value(), std::bad_optional_access);
}

TEST_CASE("outcome: a report prints as a table whose columns are aligned") {
    cohort::report r;
    r.outcomes = {ended(0, cohort::cause::returned, cohort::exit_status::from_code(0)),
                  ended(10, cohort::cause::killed, cohort::exit_status::from_signal(9, false))};
    outcome_access::note(r.outcomes[1]) = "after returning";
    r.outcomes[1].usage.max_rss = 0;
    CHECK(fmt::format("{}", r) ==
          "index   pid  cause     status             time   memory\n"
          "    0  1000  returned  exit code 0     1.500 s  3.5 MiB\n"
          "   10  1010  killed    signal SIGKILL  1.500 s        -  after returning");
}

TEST_CASE("outcome: a worker of another host is printed with its host") {
    cohort::report r;
    r.outcomes = {ended(0, cohort::cause::returned, cohort::exit_status::from_code(0)),
                  ended(10, cohort::cause::exited, cohort::exit_status::from_code(3))};
    r.outcomes[0].host = "a";
    r.outcomes[1].host = "node03";
    CHECK(fmt::format("{}", r.outcomes[1]) ==
          "worker 10 (node03, pid 1010): exited, exit code 3, 1.500 s, 3.5 MiB");
    CHECK(fmt::format("{}", r) == "index  host     pid  cause     status          time   memory\n"
                                  "    0  a       1000  returned  exit code 0  1.500 s  3.5 MiB\n"
                                  "   10  node03  1010  exited    exit code 3  1.500 s  3.5 MiB");
    r.hosts = {"a", "node03"};
    const auto json = cohort::to_json(r);
    CHECK(json.find(R"("hosts":["a","node03"])") != std::string::npos);
    CHECK(json.find(R"("host":"node03")") != std::string::npos);
}

TEST_CASE("outcome: an error_record prints as type and message, or as what it has") {
    cohort::error_record e;
    CHECK(fmt::format("{}", e).empty());
    e.message = "m";
    CHECK(fmt::format("{}", e) == "m");
    e.type = "T";
    CHECK(fmt::format("{}", e) == "T: m");
    e.message.clear();
    CHECK(fmt::format("{}", e) == "T");
}

TEST_CASE("outcome: copying an error never throws") {
    copies_quietly<cohort::process_exception>();
    copies_quietly<cohort::process_raised_exception>();
    copies_quietly<cohort::process_exited_exception>();
    copies_quietly<cohort::host_lost>();
    copies_quietly<cohort::group_stopped>();
    copies_quietly<cohort::group_timed_out>();
    copies_quietly<cohort::spawn_error>();
    copies_quietly<cohort::result_error>();
}

TEST_CASE("outcome: each error keeps its values, and is caught as its bases") {
    const auto outcomes = std::make_shared<const std::vector<outcome>>(
        1, ended(0, cohort::cause::raised, cohort::exit_status::from_code(1)));
    cohort::error_record record;
    record.message = "m";
    try {
        throw cohort::process_raised_exception("text", 3, 77, outcomes, record);
    } catch (const cohort::process_exception& error) {
        CHECK(std::string(error.what()) == "text");
        CHECK(error.error_index() == 3);
        CHECK(error.error_pid() == 77);
        CHECK(error.outcomes().size() == 1);
        CHECK(dynamic_cast<const cohort::process_raised_exception&>(error).error() == record);
    }
    const cohort::process_exited_exception exited("text", 0, 1, nullptr,
                                                  cohort::exit_status::from_signal(9, false));
    CHECK(exited.exit_code() == -9);
    CHECK(exited.signal_name() == "SIGKILL");
    CHECK(exited.outcomes().empty());
    const cohort::group_stopped stopped(outcomes);
    CHECK(stopped.error_index() == -1);
    CHECK(stopped.error_pid() == 0);
}

TEST_CASE("outcome: a spawn_error says what failed, in which worker and why") {
    const auto code = std::make_error_code(std::errc::no_such_file_or_directory);
    const cohort::spawn_error error(code, "exec(\"trian.py\")", 3, "exec");
    CHECK(std::string(error.what()) == "exec(\"trian.py\"): No such file or directory (worker 3)");
    CHECK(error.error_index() == 3);
    CHECK(error.stage() == "exec");
    CHECK(error.code() == std::errc::no_such_file_or_directory);
    const cohort::spawn_error of_nobody(code, "memfd_create", -1, "memory_file");
    CHECK(std::string(of_nobody.what()) == "memfd_create: No such file or directory");
}

}  // namespace outcome_test
