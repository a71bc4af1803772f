// SPDX-License-Identifier: BSL-1.0
#include "base/text/text.hpp"

#include <cohort/host_errors.hpp>
#include <cohort/json.hpp>

#include <doctest/doctest.h>

#include <csignal>
#include <stdexcept>
#include <string>
#include <typeinfo>

namespace exception_json_test {

using namespace cohort;
using inside = detail::outcome_access;

namespace {

error_record error_with_all() {
    error_record error;
    error.type = "std::system_error";
    error.message = "open \"x\": \u00e9";
    error.trace = "Traceback ...\nstd::system_error [generic:2]: open \"x\": \u00e9";
    error.frames.resize(2);
    error.frames[0].function = "run(int)";
    error.frames[0].file = "a.cpp";
    error.frames[0].line = 7;
    error.frames[1].module = "/bin/x";
    error.frames[1].build_id = "f00d";
    error.frames[1].offset = UINT64_MAX;
    error.frames[1].inlined = true;
    error.code = 2;
    error.category = "generic";
    error.timestamp =
        std::chrono::system_clock::time_point(std::chrono::microseconds(1'700'000'000'000'001));
    detail::error_record_access::value(error) = std::string("\0\x80", 2);
    error.nested = {error};
    error.nested[0].worker = 4;
    error.nested[0].pid = 99;
    return error;
}

/// A worker in which every field says something.
outcome worker(int index, exit_status status, cause why) {
    outcome one;
    one.index = index;
    one.pid = 1000 + index;
    one.status = status;
    one.cause = why;
    one.first_failure = index == 2;
    one.started = std::chrono::steady_clock::time_point(std::chrono::nanoseconds(123'456'789'012));
    one.ended = one.started + std::chrono::nanoseconds(index + 1);
    one.usage = {std::chrono::microseconds(1), std::chrono::microseconds(2), 3, 4, 5, 6, 7};
    one.error = error_with_all();
    cohort::crash_record crash;
    crash.signal = SIGBUS;
    crash.code = BUS_ADRALN;
    crash.address = 0x11;
    crash.trace = "SIGBUS at address 0x11";
    crash.frames = error_with_all().frames;
    one.crash = crash;
    one.at_stop.resize(2);
    one.at_stop[0].id = 5;
    one.at_stop[0].name = "main";
    one.at_stop[0].state = 'S';
    one.at_stop[0].wait_channel = "futex_wait";
    one.at_stop[1].id = 6;
    one.at_stop[1].frames = error_with_all().frames;
    one.out.head = shared_text("first\u00e9\n");
    one.out.tail = shared_text("last\n");
    one.out.total = 1'000'000;
    one.err.head = shared_text("x");
    one.err.total = 1;
    one.host = index == 2 ? "node03" : "";
    inside::success(one) = index == 0;
    inside::is_command(one) = index == 1;
    inside::work(one) = std::make_shared<const std::string>("sh -c 'exit 3'");
    one.started_at =
        std::chrono::system_clock::time_point(std::chrono::milliseconds(1'795'000'000'123));
    one.ended_at = one.started_at + std::chrono::seconds(5);
    inside::merges(one) = index == 1;
    inside::note(one) = "after returning";
    inside::result(one) = std::make_shared<detail::result_bytes>(
        detail::result_bytes{"i", {std::byte{0}, std::byte{0xFF}}});
    return one;
}

void check_equal(const outcome& a, const outcome& b) {
    CHECK(a.index == b.index);
    CHECK(a.host == b.host);
    CHECK(a.pid == b.pid);
    CHECK(a.status == b.status);
    CHECK(a.cause == b.cause);
    CHECK(a.first_failure == b.first_failure);
    CHECK(a.started == b.started);
    CHECK(a.ended == b.ended);
    CHECK(a.usage == b.usage);
    CHECK(a.work() == b.work());
    CHECK(a.started_at == b.started_at);
    CHECK(a.ended_at == b.ended_at);
    CHECK(a.error == b.error);
    CHECK(a.crash == b.crash);
    CHECK(a.at_stop == b.at_stop);
    CHECK(a.out == b.out);
    CHECK(a.err == b.err);
    CHECK(a.success() == b.success());
    CHECK(inside::is_command(a) == inside::is_command(b));
    CHECK(inside::merges(a) == inside::merges(b));
    CHECK(a.note() == b.note());
    const auto *left = inside::result(a), *right = inside::result(b);
    REQUIRE((left == nullptr) == (right == nullptr));
    if (left != nullptr) {
        CHECK(left->type == right->type);
        CHECK(left->cbor == right->cbor);
    }
}

process_exception::outcome_list workers() {
    std::vector<outcome> all{
        worker(0, exit_status::from_code(0), cause::returned),
        worker(1, exit_status::from_code(300), cause::exited),
        worker(2, exit_status::from_signal(SIGSEGV, true), cause::signaled),
        worker(3, exit_status::from_signal(SIGKILL, false), cause::killed),
        worker(4, exit_status(), cause::lost),
        outcome(),
    };
    inside::result(all[1]) = nullptr;                                   // a command has none
    inside::result(all[3]) = std::make_shared<detail::result_bytes>();  // void
    all[4].error.reset();
    all[4].crash.reset();
    all[4].at_stop.clear();
    return std::make_shared<const std::vector<outcome>>(std::move(all));
}

/// What is read of the text of `e`; it is of the same type.
template <class Exception>
Exception again(const Exception& e) {
    const std::string text = to_json(e);
    CHECK(text.find('\n') == std::string::npos);
    try {
        std::rethrow_exception(exception_from_json(text));
    } catch (const process_exception& read) {
        REQUIRE(dynamic_cast<const Exception*>(&read) != nullptr);
        CHECK(std::string(read.what()) == e.what());
        CHECK(read.error_index() == e.error_index());
        CHECK(read.error_pid() == e.error_pid());
        REQUIRE(read.outcomes().size() == e.outcomes().size());
        for (std::size_t i = 0; i < e.outcomes().size(); ++i)
            check_equal(read.outcomes()[i], e.outcomes()[i]);
        CHECK(to_json(read) == text);
        return dynamic_cast<const Exception&>(read);
    }
}

std::string refusal_of(std::string_view text) {
    try {
        exception_from_json(text);
    } catch (const std::invalid_argument& e) {
        return e.what();
    }
    return "taken";
}

}  // namespace

TEST_CASE("exception json: every exception of a group is read back with its type and every field") {
    again(process_exception("worker 2 failed\n\u00e9", 2, 1002, workers()));
    again(group_stopped(workers()));
    again(group_timed_out(workers(), std::chrono::milliseconds(1500)));
    const process_raised_exception raised("\n\n-- Process 2 ...", 2, 1002, workers(),
                                          error_with_all());
    CHECK(again(raised).error() == raised.error());
    for (const auto status : {exit_status::from_code(3), exit_status::from_code(-1),
                              exit_status::from_code(0), exit_status::from_signal(SIGKILL, false),
                              exit_status::from_signal(SIGSEGV, true), exit_status()}) {
        const process_exited_exception exited("process 2 ...", 2, 1002, workers(), status);
        CHECK(again(exited).status() == status);
    }
    const host_lost lost("host node03 was lost: no beat for 10 s", 2, 1002, workers(), "node03");
    CHECK(again(lost).host() == "node03");
}

TEST_CASE(
    "exception json: the exception of a worker function can be thrown again as its own type") {
    const auto cause_of = [](const process_exception& e) -> std::string {
        try {
            std::rethrow_exception(exception_from_json(to_json(e)));
        } catch (const process_raised_exception& read) {
            try {
                std::rethrow_if_nested(read);
            } catch (const std::out_of_range& cause) {
                return cause.what();
            }
        }
        return "none";
    };
    error_record error;
    error.type = "std::out_of_range";
    error.message = "no such month";
    outcome failed;
    failed.index = 0;
    const auto thrown_by = [&](const outcome& one) {
        return process_raised_exception(
            "text", 0, 1001, std::make_shared<const std::vector<outcome>>(std::vector{one}), error);
    };
    CHECK(cause_of(thrown_by(failed)) == "no such month");
    inside::is_command(failed) = true;  // what it says of types is not what this program threw
    CHECK(cause_of(thrown_by(failed)) == "none");
    error.type = "of_nobody";
    inside::is_command(failed) = false;
    CHECK(cause_of(thrown_by(failed)) == "none");
}

TEST_CASE("exception json: every cause has a name that is read") {
    for (int i = 0; i <= static_cast<int>(cause::host_lost); ++i) {
        outcome one;
        one.cause = static_cast<cause>(i);
        again(process_exception("x", 0, 1, std::make_shared<std::vector<outcome>>(1, one)));
    }
}

TEST_CASE("exception json: a group without workers, and a text without words") {
    again(process_exception("", -1, 0, nullptr));
    CHECK(to_json(process_exception("x", -1, 0, nullptr)) ==
          R"({"exception":"process_exception","outcomes":[],"what":"x"})");
}

TEST_CASE("exception json: bytes that are not UTF-8 are replaced") {
    const process_exception e("a\xFF", 0, 1, nullptr);
    try {
        std::rethrow_exception(exception_from_json(to_json(e)));
    } catch (const process_exception& read) {
        CHECK(std::string(read.what()) == "a\xEF\xBF\xBD");
    }
}

TEST_CASE("exception json: any other JSON is refused with a reason") {
    const std::string start = "exception_from_json: ";
    for (const std::string text : {"", "{", "words", R"({"exception":"process_exception",)"})
        CHECK(refusal_of(text) == start + "it is not JSON, or nested too deeply");
    CHECK(refusal_of(R"({"x":)" + std::string(100, '[') + std::string(100, ']') + "}") ==
          start + "it is not JSON, or nested too deeply");
    for (const std::string text : {"[]", "7", "null", "\"group_stopped\""})
        CHECK(refusal_of(text) == start + "it is no JSON object");
    for (const std::string text : {"{}", R"({"exception":"group_stopped"})",
                                   R"({"exception":"group_stopped","outcomes":{}})"})
        CHECK(refusal_of(text) == start + "it has no outcomes");
    CHECK(refusal_of(R"({"exception":"group_stopped","outcomes":[7]})") ==
          start + "an outcome is no object");
    for (const std::string text : {R"({"outcomes":[]})", R"({"exception":7,"outcomes":[]})",
                                   R"({"exception":"spawn_error","outcomes":[]})"})
        CHECK(refusal_of(text) == start + "it names none of cohort's exceptions");
    CHECK(refusal_of(R"({"exception":"process_raised_exception","outcomes":[],"error":"m"})") ==
          start + "a process_raised_exception without an error");
    CHECK(refusal_of(std::string((16 << 20) + 1, ' ')) == start + "it is longer than 16 MiB");
    std::string many = R"({"exception":"group_stopped","outcomes":[{})";
    for (int i = 0; i < 65'536; ++i)
        many += ",{}";
    CHECK(refusal_of(many + "]}") == start + "it has more than 65,536 outcomes");
}

TEST_CASE("exception json: members of an unexpected type have the default value") {
    try {
        std::rethrow_exception(exception_from_json(
            R"({"exception":"process_exited_exception","what":7,"error_index":-5,"error_pid":1e99,)"
            R"("status":{"code":99999999999,"signal":-1},"more":{},"outcomes":[{"index":"1",)"
            R"("pid":-9,"status":7,"cause":"mood","first_failure":1,"started":1.5,"usage":[],)"
            R"("error":[],"crash":{"signal":9},"at_stop":{},"success":"true","note":null,)"
            R"("result":{"type":"i","cbor":"0"}}]})"));
    } catch (const process_exited_exception& e) {
        CHECK(std::string(e.what()).empty());
        CHECK(e.error_index() == -1);
        CHECK(e.error_pid() == 0);
        CHECK(e.status() == exit_status());
        REQUIRE(e.outcomes().size() == 1);
        check_equal(e.outcomes()[0], outcome());
    }
}

TEST_CASE("exception json: what is too long goes without results, then without stacks") {
    std::vector<outcome> all(3, worker(0, exit_status::from_code(0), cause::raised));
    const auto read_of = [&] {
        const std::string text = to_json(
            process_exception("x", 0, 1, std::make_shared<const std::vector<outcome>>(all)));
        CHECK(text.size() <= (16 << 20));
        try {
            std::rethrow_exception(exception_from_json(text));
        } catch (const process_exception& read) {
            return read;
        }
    };
    inside::result(all[1]) = std::make_shared<detail::result_bytes>(
        detail::result_bytes{"v", std::vector<std::byte>(9 << 20)});
    CHECK(inside::result(read_of().outcomes()[1]) == nullptr);
    CHECK(read_of().outcomes()[1].error == all[1].error);
    auto long_error = error_with_all();
    long_error.message = std::string(1 << 20, '\x01');  // six bytes each as an escape
    for (outcome& one : all)
        one.error = long_error;
    CHECK(read_of().outcomes()[1].error->frames.empty());
    CHECK(read_of().outcomes()[1].error->message.size() <= 1024);
    CHECK(read_of().outcomes()[1].usage == all[1].usage);

    all.assign(65'537, outcome());
    CHECK_THROWS_AS(read_of(), std::length_error);
}

TEST_CASE("exception json: an error that is too long with its escapes is shortened") {
    error_record error;
    error.type = "command";
    error.message = error.trace = std::string(1 << 20, '\1');
    auto all = std::make_shared<std::vector<outcome>>(1);
    all->front().index = 0;
    all->front().error = error;
    const std::string text =
        to_json(process_raised_exception("what\n" + error.trace, 0, 7, all, error));
    CHECK(text.size() < (16U << 20));
    CHECK_THROWS_AS(std::rethrow_exception(exception_from_json(text)), process_raised_exception);
}

TEST_CASE(
    "exception json: the named worker can be asked for, and no time is before its clock's epoch") {
    const auto read = [](const char* index) -> process_exception {
        try {
            std::rethrow_exception(exception_from_json(
                std::string(
                    R"({"exception":"process_exception","outcomes":[{"started":-9223372036854775808,)"
                    R"("ended":9223372036854775807}],"error_index":)") +
                index + "}"));
        } catch (const process_exception& e) {
            return e;
        }
    };
    CHECK(read("0").error_index() == 0);
    CHECK(read("1").error_index() == -1);
    CHECK(read("-7").error_index() == -1);
    const auto worker = read("0").outcomes()[0];
    CHECK(worker.started == std::chrono::steady_clock::time_point());
    CHECK(worker.ended > worker.started);
}

}  // namespace exception_json_test
