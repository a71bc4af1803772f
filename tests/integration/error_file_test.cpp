// SPDX-License-Identifier: BSL-1.0
// What a command says in its error file, and what happens to what it should not have said.
#include "descriptor_limit.hpp"
#include "live_support.hpp"
#include "pipes.hpp"
#include "start_support.hpp"

#include <csignal>

namespace error_file_test {

using namespace cohort::test;

namespace {

/// A shell that writes its error file by `script`, then fails.
cohort::command writer(const std::string& script) {
    return cohort::command("sh", "-c", script + "\nexit 3");
}

/// The error that the group throws.
cohort::error_record error_of(cohort::command work) {
    const auto thrown = thrown_by<cohort::process_raised_exception>(std::move(work));
    const auto& worker = thrown.outcomes().at(0);
    CHECK(worker.cause == cohort::cause::raised);
    CHECK(worker.status.exit_code() == 3);
    CHECK(worker.error.value() == thrown.error());
    CHECK(std::string(thrown.what()) ==
          "\n\n-- Process 0 terminated with the following error:\n" + thrown.error().trace);
    return thrown.error();
}

/// The error when the file holds exactly `bytes`.
cohort::error_record error_in(const std::string& bytes) {
    const scratch_directory directory;
    return error_of(writer("cat " + directory.write("bytes", bytes) + " > $COHORT_ERROR_FILE"));
}

cohort::error_record record_of(const std::string& type, const std::string& message) {
    cohort::error_record error;
    error.type = type;
    error.message = message;
    error.trace = to_string(error);
    return error;
}

bool has_python() {
    static const bool found = [] {
        try {
            return ended(cohort::command("python3", "-c", "")).success();
        } catch (const cohort::spawn_error&) {
            return false;
        }
    }();
    return found;
}

constexpr const char* plain_error = R"({"message":"no such data set","type":"data_error"})";

}  // namespace

TEST_CASE("error file: what a command writes to its error file is its error, by either variable") {
    const leak_guard guard;
    const auto expected = record_of("data_error", "no such data set");
    const scratch_directory directory;
    const auto file = directory.write("error", plain_error);
    CHECK(error_of(writer("cat " + file + " > $COHORT_ERROR_FILE")) == expected);
    CHECK(error_of(writer("cat " + file + " > $TORCHELASTIC_ERROR_FILE")) == expected);
    CHECK(error_of(writer("cat " + file + " >> \"$COHORT_ERROR_FILE\"")) == expected);
}

TEST_CASE("error file: a command without one has neither the descriptor nor the variables") {
    const leak_guard guard;
    const cohort::command list("sh", "-c", "echo /proc/self/fd/*; env | grep -c ERROR_FILE");
    CHECK(printed_by(list).find("/960") != std::string::npos);
    ::setenv("TORCHELASTIC_ERROR_FILE", "/tmp/of-the-caller", 1);
    const auto printed = printed_by(list, cohort::options(1).error_file(false).success_codes(0, 1));
    ::unsetenv("TORCHELASTIC_ERROR_FILE");
    CHECK(printed.find("/60") == std::string::npos);
    CHECK(lines_of(printed).back() == "0");
    const auto thrown = thrown_by<cohort::process_exited_exception>(
        cohort::command("sh", "-c", "exit 3"), cohort::options(1).error_file(false));
    CHECK(thrown.exit_code() == 3);
    // A function tells its exceptions by a file that is no error file.
    CHECK(ended(cohort::function<do_nothing>(), cohort::options(1).error_file(false)).success());
}

TEST_CASE("error file: a worker that starts later has a number that the limit allows then") {
    const leak_guard guard;
    asio::io_context io;
    gate closed;
    const cohort::command told("sh", "-c", "read line <&8; echo $COHORT_ERROR_FILE");
    completed<cohort::group> started;
    cohort::async_spawn(io, told,
                        cohort::options(2)
                            .at_once(1)
                            .stdout_to(cohort::capture())
                            .fd(closed.child_end(), gate::number),
                        started.into());
    run_out(io);
    auto group = started.take();
    completed<cohort::report> ended;
    {
        const descriptor_limit lower(512);
        closed.open();
        group.async_wait(ended.into());
        run_out(io);
    }
    const auto report = ended.take();
    REQUIRE_MESSAGE(report.success(), fmt::format("{}", report));
    CHECK(report.outcomes[0].out.text().ends_with("/960\n"));
    CHECK(report.outcomes[1].out.text().ends_with("/60\n"));
}

TEST_CASE("error file: its path belongs to one worker, and is no file on any disk") {
    const leak_guard guard;
    const cohort::command print("sh", "-c", "echo $$ $COHORT_ERROR_FILE $TORCHELASTIC_ERROR_FILE");
    for (const auto& printed : printed_by_each(print, {}, 3)) {
        int pid = 0;
        std::string ours, torchs;
        std::istringstream(printed) >> pid >> ours >> torchs;
        CHECK(ours == fmt::format("/proc/{}/fd/960", pid));
        CHECK(torchs == ours);
    }
    // A descriptor that is given at its number moves it.
    const pipe_pair given;
    const auto moved = printed_by(cohort::command("sh", "-c", "echo ${COHORT_ERROR_FILE##*/}"),
                                  cohort::options(1).fd(given.reads(), 960).fd(given.reads(), 961));
    CHECK(moved == "962\n");
}

TEST_CASE("error file: what a command opens at numbers that it had closed is left alone") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto data = directory.write("data", "precious\n");
    const std::string script = R"(
for n in {3..99}; do eval "exec $n>&-"; done
for n in {10..99}; do eval "exec $n<>$0"; done
echo 'it failed' > $COHORT_ERROR_FILE
exit 3)";
    const auto report = ended(cohort::command("bash", "-c", script, data));
    CHECK(report.outcomes.at(0).error.value().message == "it failed");
    CHECK(read_file(data) == "precious\n");
    // One that closes all has no error file.
    const auto closes_all =
        ended(cohort::command("bash", "-c",
                              "for n in /proc/$$/fd/*; do n=${n##*/}; test $n -lt 3 || eval \"exec "
                              "$n>&-\"; done; echo 'it failed' > $COHORT_ERROR_FILE; exit 3"),
              cohort::options(1).stderr_to(cohort::discard()));
    CHECK(closes_all.outcomes.at(0).cause == cohort::cause::exited);
}

TEST_CASE("error file: the worker's children and their children find it too") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto error = directory.write("error", plain_error);
    const auto inner =
        directory.write("inner", "#!/bin/sh\ncat " + error + " > $COHORT_ERROR_FILE\n", 0755);
    const auto outer = directory.write("outer", "#!/bin/sh\n(sh " + inner + ")\n", 0755);
    CHECK(error_of(writer("sh " + outer)).message == "no such data set");
    if (!has_python())
        return skip("the last check needs python3");
    // Python closes the descriptors of its children.
    CHECK(error_of(cohort::command(
                       "python3", "-c",
                       "import subprocess, sys; subprocess.run([sys.argv[1]]); sys.exit(3)", outer))
              .message == "no such data set");
}

TEST_CASE("error file: each worker has its own, and the first failure in time is thrown") {
    const leak_guard guard;
    const pipe_pair ready;  // worker 2 fails when the others are ready to be stopped
    const auto work = [](int index) {
        const std::string say = "echo worker $COHORT_INDEX > $COHORT_ERROR_FILE; exit 3";
        return cohort::command(
            "sh", "-c",
            index == 2 ? "read a <&8; read b <&8; " + say
                       : fmt::format("trap \"{}\" TERM; echo >&9; sleep 1000 & wait", say));
    };
    const auto report = ended(cohort::command_for(work),
                              cohort::options(3).fd(ready.reads(), 8).fd(ready.writes(), 9));
    for (const auto& worker : report.outcomes) {
        CHECK(worker.error.value().message == fmt::format("worker {}", worker.index));
        CHECK(worker.cause == (worker.index == 2 ? cohort::cause::raised : cohort::cause::stopped));
        CHECK(worker.first_failure == (worker.index == 2));
    }
}

TEST_CASE("error file: what a successful worker writes is ignored") {
    const leak_guard guard;
    const auto report = ended(cohort::command("sh", "-c", "echo oops > $COHORT_ERROR_FILE"));
    CHECK(report.success());
    CHECK_FALSE(report.outcomes.at(0).error.has_value());
    const auto accepted =
        ended(writer("echo oops > $COHORT_ERROR_FILE"), cohort::options(1).success_codes(3));
    CHECK(accepted.success());
    CHECK_FALSE(accepted.outcomes.at(0).error.has_value());
}

TEST_CASE("error file: an empty or blank one counts as none") {
    const leak_guard guard;
    for (const auto* script :
         {":", ": > $COHORT_ERROR_FILE", "printf ' \\n\\t' > $COHORT_ERROR_FILE",
          "truncate -s 100 $COHORT_ERROR_FILE", "truncate -s 100M $COHORT_ERROR_FILE"}) {
        CAPTURE(script);
        const auto thrown = thrown_by<cohort::process_exited_exception>(writer(script));
        CHECK(thrown.exit_code() == 3);
        CHECK(std::string(thrown.what()) == "process 0 terminated with exit code 3");
        CHECK(thrown.outcomes().at(0).cause == cohort::cause::exited);
    }
}

TEST_CASE("error file: truncated JSON and plain text become the message as they are") {
    const leak_guard guard;
    for (const std::string text : {R"({"message":"no such)", "just a line of text", "{", "[1,2",
                                   R"({"message":"a"} {"message":"b"})"}) {
        CAPTURE(text);
        const auto error = error_in(text);
        CHECK(error.message == text);
        CHECK(error.trace == text);
        CHECK(error.type.empty());
    }
    CHECK(error_in(std::string(5000, '[')).message == std::string(5000, '['));
}

TEST_CASE("error file: JSON of another shape becomes the message as it is") {
    const leak_guard guard;
    for (const std::string text :
         {"null", "17", R"("text")", "[]", "{}", R"(["message"])", R"({"message":12})",
          R"({"message":{"message":12}})", R"({"error":"what"})", R"({"message":""})"}) {
        CAPTURE(text);
        CHECK(error_in(text).message == text);
    }
    const auto odd = error_in(R"({"message":"m","type":7,"trace":["x"],"more":null})");
    CHECK(odd == record_of("", "m"));
}

TEST_CASE("error file: a message that is not UTF-8 is made so") {
    const leak_guard guard;
    CHECK(error_in("{\"message\":\"a\xFF\xC3z\"}").message == "a\xEF\xBF\xBD\xEF\xBF\xBDz");
    CHECK(error_in("caf\xE9").message == "caf\xEF\xBF\xBD");
    CHECK(error_in(std::string("a\0b", 3)).message == "a\xEF\xBF\xBD"
                                                      "b");
}

TEST_CASE("error file: of 100 MB the beginning and the end are kept") {
    const leak_guard guard;
    const auto error =
        error_of(writer("{ printf '{\"message\":\"the beginning'; head -c 100000000 /dev/zero | tr "
                        "'\\0' x; printf 'the end\"}'; } > $COHORT_ERROR_FILE"));
    CHECK(error.message.size() <= (1 << 20));
    CHECK(error.message.size() > (1 << 19));
    CHECK(error.message.substr(0, 26) == "{\"message\":\"the beginningx");
    CHECK(error.message.substr(error.message.size() - 10) == "xthe end\"}");

    const auto sparse = error_of(
        writer("truncate -s 100G $COHORT_ERROR_FILE; printf 'the end' >> $COHORT_ERROR_FILE"));
    CHECK(sparse.message.size() <= (1 << 20));
    CHECK(sparse.message.substr(sparse.message.size() - 7) == "the end");
}

TEST_CASE("error file: a long but whole record keeps its type, and a bounded message") {
    const leak_guard guard;
    const auto error =
        error_in(R"({"type":"long_error","message":"begin)" + std::string(3 << 20, 'm') + "end\"}");
    CHECK(error.type == "long_error");
    CHECK(error.message.size() <= (1 << 20));
    CHECK(error.message.substr(0, 6) == "beginm");
    CHECK(error.message.substr(error.message.size() - 4) == "mend");
    CHECK(error.trace.size() <= (1 << 20));
}

TEST_CASE("error file: both shapes of torch's @record are understood") {
    const leak_guard guard;
    const auto python =
        error_in(R"({"message": {"message": "ValueError: bad batch",)"
                 R"( "extraInfo": {"py_callstack": "Traceback (most recent call last)\n)"
                 R"(  File \"t.py\", line 1\nValueError: bad batch\n",)"
                 R"( "timestamp": "1700000000"}}})");
    CHECK(python.type == "ValueError");
    CHECK(python.message == "bad batch");
    CHECK(python.trace.rfind("Traceback (most recent call last)\n  File \"t.py\", line 1\n", 0) ==
          0);
    CHECK(python.trace.find("ValueError: bad batch") != std::string::npos);
    const std::chrono::system_clock::time_point then(std::chrono::seconds(1700000000));
    CHECK(python.timestamp == then);

    const auto by_signal = error_in(R"({"message": "Received SIGTERM", "timestamp": 1700000000})");
    CHECK(by_signal.message == "Received SIGTERM");
    CHECK(by_signal.timestamp == then);
}

TEST_CASE("error file: the output of Python's json module is read") {
    const leak_guard guard;
    if (!has_python())
        return skip("python3 is not here");
    // What torch/distributed/elastic/multiprocessing/errors/error_handler.py does.
    const scratch_directory directory;
    const auto script = directory.write("record.py", R"(import json, os, sys, time, traceback
try:
    raise RuntimeError("caf\u00e9 \u20ac \"quoted\"")
except Exception as e:
    data = {"message": {"message": f"{type(e).__name__}: {e}", "extraInfo": {
        "py_callstack": traceback.format_exc(), "timestamp": str(int(time.time()))}}}
    with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as fp:
        json.dump(data, fp)
    sys.exit(3)
)");
    const auto error = error_of(cohort::command("python3", script));
    CHECK(error.type == "RuntimeError");
    CHECK(error.message == "caf\xC3\xA9 \xE2\x82\xAC \"quoted\"");
    CHECK(error.trace.find("Traceback (most recent call last)") == 0);
    CHECK(error.trace.find("record.py") != std::string::npos);
    const auto age = std::chrono::system_clock::now() - error.timestamp.value();
    CHECK(age >= std::chrono::seconds(0));
    CHECK(age < std::chrono::seconds(60));
}

TEST_CASE("error file: a worker that dies by a signal keeps the error that it wrote") {
    const leak_guard guard;
    const auto thrown = thrown_by<cohort::process_raised_exception>(
        cohort::command("sh", "-c", "echo last words > $COHORT_ERROR_FILE; kill -SEGV $$"));
    CHECK(thrown.error().message == "last words");
    CHECK(thrown.outcomes().at(0).status.signal() == SIGSEGV);
}

}  // namespace error_file_test
