// SPDX-License-Identifier: BSL-1.0
// options::logs(): a directory for what a run leaves, laid out as torch elastic does it.
#include "pipes.hpp"
#include "procfs.hpp"
#include "start_support.hpp"
#include "watchdog.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <stdexcept>

namespace logs_test {

using namespace cohort::test;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

using tree = std::map<std::string, std::string>;

cohort::command shell(const std::string& script) { return cohort::command("sh", "-c", script); }

/// All files below a directory, by their relative paths.
tree files_in(const std::string& directory) {
    tree files;
    for (const auto& entry : fs::recursive_directory_iterator(directory))
        if (entry.is_regular_file())
            files.emplace(fs::relative(entry.path(), directory).string(),
                          read_file(entry.path().string()));
    return files;
}

std::set<std::string> names_of(const tree& files) {
    std::set<std::string> names;
    for (const auto& [name, text] : files)
        names.insert(name);
    return names;
}

cohort::options logging(int size, const scratch_directory& directory,
                        const std::string& run = "job42") {
    return cohort::options(size)
        .on_failure(cohort::on_failure::keep_going)
        .logs(cohort::logs(directory.file("logs")).run_id(run));
}

void throw_at_one(int index) {
    if (index == 1)
        throw std::domain_error("no such data set");
}

template <class Work>
asio::awaitable<void> look_at_each_end(Work work, cohort::options how, std::string report,
                                       std::vector<bool>& is_there) {
    auto group = co_await cohort::spawn(std::move(work), std::move(how));
    while (const auto ended = co_await group.next())
        is_there.push_back(fs::exists(report));
}

asio::awaitable<void> directory_of(cohort::options how, fs::path& into) {
    auto group = co_await cohort::spawn(cohort::command("true"), std::move(how));
    into = group.log_directory();
    (void)co_await group.wait();
    CHECK(group.log_directory() == into);
}

fs::path log_directory(cohort::options how) {
    fs::path found;
    run_coroutine(directory_of(std::move(how), found));
    return found;
}

}  // namespace

TEST_CASE("logs: each worker has a directory with both streams and its error") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto script = "echo out $LOCAL_RANK; echo err $LOCAL_RANK >&2;"
                        "test $LOCAL_RANK != 1 || { "
                        "echo '{\"message\":\"no data\",\"type\":\"data_error\"}'"
                        ">$TORCHELASTIC_ERROR_FILE; exit 3; }; test $LOCAL_RANK != 2 || exit 4";
    const auto report = ended(shell(script), logging(3, directory));
    const auto files = files_in(directory.file("logs"));
    CHECK(names_of(files) ==
          std::set<std::string>{"job42/attempt_0/0/stdout.log", "job42/attempt_0/0/stderr.log",
                                "job42/attempt_0/1/stdout.log", "job42/attempt_0/1/stderr.log",
                                "job42/attempt_0/1/error.json", "job42/attempt_0/2/stdout.log",
                                "job42/attempt_0/2/stderr.log", "job42/report.json"});
    for (int index = 0; index < 3; ++index) {
        const auto own = fmt::format("job42/attempt_0/{}/", index);
        CHECK(files.at(own + "stdout.log") == fmt::format("out {}\n", index));
        CHECK(files.at(own + "stderr.log") == fmt::format("err {}\n", index));
    }
    const auto error = nlohmann::json::parse(files.at("job42/attempt_0/1/error.json"));
    CHECK(error.at("message") == "no data");
    CHECK(error.at("type") == "data_error");
    CHECK(files.at("job42/report.json") == to_json(report) + "\n");
    for (const auto& worker : report.outcomes)
        CHECK(worker.note() == "");
}

TEST_CASE("logs: the exception of a function is in its error.json") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto report = ended(cohort::function<throw_at_one>(), logging(2, directory));
    const auto run = directory.file("logs/job42");
    CHECK(names_in(run) == std::set<std::string>{"attempt_0", "report.json"});
    CHECK(names_in(run + "/attempt_0/0") == std::set<std::string>{"stdout.log", "stderr.log"});
    const auto error = nlohmann::json::parse(read_file(run + "/attempt_0/1/error.json"));
    CHECK(error.at("message") == "no such data set");
    CHECK(error.at("type") == report.outcomes.at(1).error.value().type);
    const auto whole = nlohmann::json::parse(read_file(run + "/report.json"));
    CHECK(whole.at("success") == false);
    CHECK(whole.at("outcomes").size() == 2);
}

TEST_CASE("logs: the report is there before the last outcome is reported, and not before") {
    const leak_guard guard;
    const scratch_directory directory;
    std::vector<bool> is_there;
    const auto script = "test $LOCAL_RANK != 2 || exit 1";
    run_coroutine(look_at_each_end(shell(script), logging(3, directory),
                                   directory.file("logs/job42/report.json"), is_there));
    REQUIRE(is_there.size() == 3);
    CHECK(is_there.back());
    is_there.clear();
    run_coroutine(look_at_each_end(shell("true"), logging(1, directory, "one"),
                                   directory.file("logs/one/report.json"), is_there));
    CHECK(is_there == std::vector<bool>{true});
}

GROUP_TEST("logs: there is no report while a worker lives") {
    const scratch_directory directory;
    ready up(executor);
    gate hold;
    auto how = logging(2, directory);
    how.fd(up.child_end(), ready::number).fd(hold.child_end(), gate::number);
    auto group = co_await cohort::spawn(
        shell("test $LOCAL_RANK = 0 || { echo >&9; read line <&8; }; echo end"), how);
    co_await up.wait();
    const auto first = co_await group.next();
    CHECK(first->index == 0);
    CHECK(read_file(directory.file("logs/job42/attempt_0/0/stdout.log")) == "end\n");
    CHECK(names_in(directory.file("logs/job42")) == std::set<std::string>{"attempt_0"});
    hold.open();
    const auto last = co_await group.next();
    CHECK(last->index == 1);
    CHECK(names_in(directory.file("logs/job42")).count("report.json") == 1);
}

TEST_CASE("logs: without a run id the run is named by the group, and two runs do not meet") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto how = cohort::options(1).name("my {job}").logs(cohort::logs(directory.file("logs")));
    CHECK(ended(shell("echo first"), how).success());
    const auto before = files_in(directory.file("logs"));
    CHECK(ended(shell("echo second"), how).success());
    const auto runs = names_in(directory.file("logs"));
    CHECK(runs.size() == 2);
    for (const auto& run : runs)
        CHECK(std::regex_match(run, std::regex(R"(my \{job\}_[a-z]{8})")));
    const auto after = files_in(directory.file("logs"));
    CHECK(after.size() == 2 * before.size());
    for (const auto& [name, text] : before)
        CHECK(after.at(name) == text);
    // The default name is that of the program that the workers execute.
    const auto unnamed = cohort::options(1).logs(cohort::logs(directory.file("unnamed")));
    CHECK(ended(shell("true"), unnamed).success());
    CHECK(names_in(directory.file("unnamed")).begin()->find("sh_") == 0);
    fs::remove_all(directory.file("unnamed"));
    CHECK(ended(cohort::function<do_nothing>(), unnamed).success());
    const std::string own = program_invocation_short_name;
    CHECK(names_in(directory.file("unnamed")).begin()->find(own + "_") == 0);
}

TEST_CASE("logs: a second run of the same id is refused, and touches nothing") {
    const leak_guard guard;
    const scratch_directory directory;
    CHECK(ended(shell("echo first"), logging(2, directory)).success());
    const auto before = files_in(directory.file("logs"));
    const auto error = thrown_by<cohort::spawn_error>(
        shell("echo second >" + directory.file("started")), logging(4, directory));
    CAPTURE(error.what());
    CHECK(error.stage() == "logs");
    CHECK(error.code() == std::errc::file_exists);
    CHECK(error.error_index() == -1);
    CHECK(std::string(error.what()).find(directory.file("logs/job42/attempt_0")) !=
          std::string::npos);
    CHECK(files_in(directory.file("logs")) == before);
    CHECK(names_in(directory.path()) == std::set<std::string>{"logs"});
}

TEST_CASE("logs: a directory that cannot be made is a spawn_error") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto plain = directory.write("plain", "text");
    const auto error = thrown_by<cohort::spawn_error>(
        shell("true"), cohort::options(1).logs(cohort::logs(plain).run_id("x")));
    CHECK(error.stage() == "logs");
    CHECK(error.code() == std::errc::not_a_directory);
    CHECK(read_file(plain) == "text");
}

TEST_CASE("logs: other sinks get the same text") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto script = "echo out; echo err >&2";
    auto how = logging(1, directory).stdout_to(cohort::capture());
    how.stderr_to(directory.file("err"));
    const auto report = ended(shell(script), how);
    const auto own = directory.file("logs/job42/attempt_0/0/");
    CHECK(report.outcomes.at(0).out.text() == "out\n");
    CHECK(read_file(own + "stdout.log") == "out\n");
    CHECK(read_file(directory.file("err")) == "err\n");
    CHECK(read_file(own + "stderr.log") == "err\n");
}

TEST_CASE("logs: a stream with merge, discard, inherit or a descriptor has no log file") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto script = "echo out; echo err >&2; echo last";
    const auto names = [&](const std::string& run) {
        return names_of(files_in(directory.file("logs/" + run + "/attempt_0")));
    };
    CHECK(ended(shell(script), logging(1, directory, "m").stderr_to(cohort::merge())).success());
    CHECK(names("m") == std::set<std::string>{"0/stdout.log"});
    CHECK(read_file(directory.file("logs/m/attempt_0/0/stdout.log")) == "out\nerr\nlast\n");
    CHECK(ended(shell(script), logging(1, directory, "d").stderr_to(cohort::discard())).success());
    CHECK(names("d") == std::set<std::string>{"0/stdout.log"});
    CHECK(ended(shell(":"), logging(1, directory, "i").stdout_to(cohort::inherit())).success());
    CHECK(names("i") == std::set<std::string>{"0/stderr.log"});
    const open_file given(directory.file("given"), O_WRONLY | O_CREAT | O_CLOEXEC);
    CHECK(ended(shell(script), logging(1, directory, "f").fd(given.get(), 2)).success());
    CHECK(names("f") == std::set<std::string>{"0/stdout.log"});
    CHECK(read_file(directory.file("given")) == "err\n");
}

TEST_CASE("logs: log_directory is absolute, also where the path of the logs is relative") {
    const leak_guard guard;
    const scratch_directory directory;
    CHECK(log_directory(cohort::options(1)).empty());
    CHECK(log_directory(logging(1, directory)) == directory.file("logs/job42/attempt_0"));
    const auto relative = cohort::options(1)
                              .working_directory(directory.path())
                              .logs(cohort::logs("a/{b}").run_id("r"));
    const auto found = log_directory(relative);
    CHECK(found == fs::path(directory.file("a/{b}/r/attempt_0")));
    CHECK(files_in(directory.file("a/{b}")).size() == 3);
}

TEST_CASE("logs: commands with working directories of their own write into the same tree") {
    const leak_guard guard;
    const scratch_directory directory;
    for (const auto* name : {"0", "1"})
        fs::create_directory(directory.file(name));
    const auto work = [&](int index) {
        return shell("pwd").working_directory(directory.file(std::to_string(index)));
    };
    const auto how = cohort::options(2)
                         .working_directory(directory.path())
                         .logs(cohort::logs("logs").run_id("r"));
    const auto report = ended(cohort::command_for(work), how);
    CHECK_MESSAGE(report.success(), fmt::format("{}", report));
    CHECK(files_in(directory.file("logs")).size() == 5);
    for (const auto* index : {"0", "1"}) {
        CHECK(read_file(directory.file(fmt::format("logs/r/attempt_0/{}/stdout.log", index))) ==
              directory.file(index) + "\n");
        CHECK(names_in(directory.file(index)).empty());
    }
}

TEST_CASE("logs: a worker that outlives this process may have log files of its own") {
    const leak_guard guard;
    const scratch_directory directory;
    CHECK(ended(shell("echo text"), logging(2, directory).parent_death_signal(0)).success());
    CHECK(read_file(directory.file("logs/job42/attempt_0/1/stdout.log")) == "text\n");
}

TEST_CASE("logs: a file with an absolute path needs no directory of the worker's") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto log = cohort::file(directory.file("log"));
    const auto sinks = {cohort::options(1).stdout_to(log),
                        cohort::options(1).stdout_to(cohort::file(log).tagged()),
                        cohort::options(1).stdout_to(log, cohort::capture()),
                        cohort::options(1).logs(cohort::logs(directory.file("logs")))};
    for (auto how : sinks) {
        how.working_directory(directory.file("missing"));
        const auto error = thrown_by<cohort::spawn_error>(cohort::command("true"), how);
        CHECK_MESSAGE(error.stage() == "chdir", std::string(error.what()));
    }
}

}  // namespace logs_test
