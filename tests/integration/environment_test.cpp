// SPDX-License-Identifier: BSL-1.0
// Where a worker runs: its variables, directory, program and descriptors.
#include "start_support.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

namespace environment_test {

using namespace cohort::test;
namespace fs = std::filesystem;

namespace {

std::string variable(int, const std::string& name) {
    const char* value = std::getenv(name.c_str());
    return value != nullptr ? value : "(unset)";
}
std::string directory_of(int) { return fs::current_path().string(); }
std::string first_bytes(int, int fd) {
    char text[64] = {};
    return ::pread(fd, text, sizeof text - 1, 0) >= 0 ? text : "(closed)";
}

template <class Work>
std::string result_of(Work work, cohort::options how = 1) {
    return ended(std::move(work), std::move(how)).outcomes.at(0).template result<std::string>();
}

/// Changes this process's directory for the length of a scope.
class changed_directory {
public:
    explicit changed_directory(const std::string& path) : before_(fs::current_path()) {
        fs::current_path(path);
    }
    ~changed_directory() { fs::current_path(before_); }

private:
    fs::path before_;
};

/// Awaits what was initiated earlier, to the end of the group.
asio::awaitable<void> finish(asio::awaitable<cohort::group> starting, cohort::report& into) {
    auto group = co_await std::move(starting);
    into = co_await group.wait();
}

constexpr const char* says_it = "#!/bin/sh\necho found in ${0%/*}\n";

}  // namespace

TEST_CASE("environment: variables can be set, replaced and removed") {
    const leak_guard guard;
    ::setenv("COHORT_TEST_A", "caller", 1);
    ::setenv("COHORT_TEST_B", "caller", 1);
    const auto how =
        cohort::options(1).env("COHORT_TEST_A", 7).unset_env("COHORT_TEST_B").env("EMPTY", "");
    const auto printed = lines_of(printed_by(cohort::command("env"), how));
    CHECK(std::count(printed.begin(), printed.end(), "COHORT_TEST_A=7") == 1);
    CHECK(std::count(printed.begin(), printed.end(), "EMPTY=") == 1);
    for (const auto& line : printed)
        CHECK(line.find("=caller") == std::string::npos);
    CHECK(result_of(cohort::function<variable>("COHORT_TEST_A"), how) == "7");
    CHECK(result_of(cohort::function<variable>("COHORT_TEST_B"), how) == "(unset)");
    CHECK(result_of(cohort::function<variable>("COHORT_TEST_B")) == "caller");
    ::unsetenv("COHORT_TEST_A");
    ::unsetenv("COHORT_TEST_B");
}

TEST_CASE("environment: clear_env keeps what is set after it and the library's own variables") {
    const leak_guard guard;
    const auto how = cohort::options(1).env("BEFORE", 1).clear_env().env("AFTER", 2);
    std::set<std::string> names;
    for (const auto& line : lines_of(printed_by(cohort::command("env"), how)))
        names.insert(line.substr(0, line.find('=')));
    CHECK(names == std::set<std::string>{"AFTER", "COHORT_ERROR_FILE", "COHORT_INDEX",
                                         "COHORT_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "RANK",
                                         "TORCHELASTIC_ERROR_FILE", "WORLD_SIZE"});
}

TEST_CASE("environment: the user may set LOCAL_RANK and LOCAL_WORLD_SIZE") {
    const leak_guard guard;
    ::setenv("LOCAL_RANK", "caller", 1);
    const cohort::command print("sh", "-c", "echo ${LOCAL_RANK-unset} ${LOCAL_WORLD_SIZE-unset}");
    CHECK(printed_by(print) == "0 1\n");
    CHECK(printed_by(print, cohort::options(1).env("LOCAL_RANK", 7)) == "7 1\n");
    CHECK(printed_by(print, cohort::options(1).unset_env("LOCAL_RANK")) == "unset 1\n");
    const auto own = cohort::command(print).env("LOCAL_WORLD_SIZE", 16);
    CHECK(printed_by(own, cohort::options(1).env("LOCAL_WORLD_SIZE", 8)) == "0 16\n");
    CHECK(printed_by(print, cohort::options(1).env("LOCAL_RANK", 7).clear_env()) == "0 1\n");
    const auto how = cohort::options(1).env("LOCAL_RANK", 7);
    CHECK(result_of(cohort::function<variable>("LOCAL_RANK"), how) == "7");
    ::unsetenv("LOCAL_RANK");
}

TEST_CASE("environment: a command's settings override those of the options") {
    const leak_guard guard;
    const scratch_directory one, two;
    const auto how = cohort::options(1)
                         .env("BOTH", "options")
                         .env("ONE", "options")
                         .working_directory(one.path())
                         .stdout_to(one.file("out"));
    const auto print = cohort::command("sh", "-c", "echo $BOTH $ONE; pwd -P")
                           .env("BOTH", "command")
                           .working_directory(two.path())
                           .stdout_to(two.file("out"));
    CHECK(ended(print, how).success());
    CHECK(read_file(two.file("out")) == "command options\n" + two.path() + "\n");
    CHECK_FALSE(fs::exists(one.file("out")));
    CHECK(printed_by(cohort::command("sh", "-c", "echo $BOTH $ONE").clear_env().env("ONE", 1),
                     how) == "1\n");
}

TEST_CASE("environment: environ is read in the call to spawn") {
    const leak_guard guard;
    const scratch_directory directory;
    cohort::report report;
    ::setenv("COHORT_TEST_A", "at the call", 1);
    auto starting = cohort::spawn(cohort::command("printenv", "COHORT_TEST_A"),
                                  cohort::options(2).stdout_to(directory.file("out")));
    ::setenv("COHORT_TEST_A", "later", 1);
    run_coroutine(finish(std::move(starting), report));
    ::unsetenv("COHORT_TEST_A");
    CHECK(read_file(directory.file("out")) == "at the call\nat the call\n");
}

TEST_CASE("environment: the caller's directory is kept, also when it changes after the call") {
    const leak_guard guard;
    const scratch_directory directory, gone;
    const auto out = directory.file("out");
    cohort::report by_command, by_function;
    auto first = [&] {
        const changed_directory here(directory.path());
        // "out" is relative to the worker's directory too.
        return std::pair(cohort::spawn(cohort::command("pwd"), cohort::options(2).stdout_to("out")),
                         cohort::spawn(cohort::function<directory_of>(), 1));
    }();
    run_coroutine(finish(std::move(first.first), by_command));
    run_coroutine(finish(std::move(first.second), by_function));
    CHECK(read_file(out) == directory.path() + "\n" + directory.path() + "\n");
    CHECK(by_function.outcomes.at(0).result<std::string>() == directory.path());

    auto second = [&] {
        const changed_directory here(gone.path());
        return cohort::spawn(cohort::command("true"), 1);
    }();
    fs::rename(gone.path(), directory.file("moved"));  // a descriptor follows it, a path would not
    run_coroutine(finish(std::move(second), by_command));
    CHECK(by_command.success());
}

TEST_CASE("environment: a program with a slash is relative to the working directory") {
    const leak_guard guard;
    const scratch_directory directory;
    fs::create_directory(directory.file("bin"));
    directory.write("bin/tool", "#!/bin/sh\npwd -P\n", 0755);
    const auto how = cohort::options(1).working_directory(directory.path());
    CHECK(printed_by(cohort::command("bin/tool"), how) == directory.path() + "\n");
    CHECK(printed_by(cohort::command("./bin/tool"), how) == directory.path() + "\n");
    CHECK(result_of(cohort::function<directory_of>(), how) == directory.path());
    // A relative directory is relative to the caller's.
    const changed_directory here(directory.path());
    CHECK(printed_by(cohort::command("./tool"), cohort::options(1).working_directory("bin")) ==
          directory.file("bin") + "\n");
}

TEST_CASE("environment: a program without a slash is searched on the worker's own PATH") {
    const leak_guard guard;
    const scratch_directory one, two;
    two.write("cohort-test-tool", says_it, 0755);
    const cohort::command tool("cohort-test-tool");
    const auto path = [](const std::string& value) {
        return cohort::options(1).env("PATH", value);
    };

    CHECK(printed_by(tool, path(one.path() + ":" + two.path())) == "found in " + two.path() + "\n");
    // One that may not be executed does not end the search.
    one.write("cohort-test-tool", says_it, 0644);
    CHECK(printed_by(tool, path(one.path() + ":" + two.path())) == "found in " + two.path() + "\n");
    CHECK(printed_by(cohort::command(tool).env("PATH", two.path()), path(one.path())) ==
          "found in " + two.path() + "\n");
    // An empty element is the worker's directory.
    for (const auto* empty : {"", ":/no/such", "/no/such:", "/no/such::/no/such"}) {
        CAPTURE(empty);
        CHECK(printed_by(tool, path(empty).working_directory(two.path())) == "found in .\n");
    }
    // The caller's PATH does not count.
    const auto missing = thrown_by<cohort::spawn_error>(cohort::command("true"), path(one.path()));
    CHECK(missing.code() == std::errc::no_such_file_or_directory);
}

TEST_CASE("environment: without a PATH a program is searched in /bin and /usr/bin") {
    const leak_guard guard;
    CHECK(printed_by(cohort::command("echo", "here"), cohort::options(1).clear_env()) == "here\n");
}

TEST_CASE("environment: stdin_from, stdout_to and stderr_to are files in the working directory") {
    const leak_guard guard;
    const scratch_directory directory;
    directory.write("in", "some input\n");
    directory.write("err", "what was there before\n");
    const auto how = cohort::options(1)
                         .working_directory(directory.path())
                         .stdin_from("in")
                         .stdout_to("out")
                         .stderr_to("err");
    CHECK(ended(cohort::command("sh", "-c", "cat; echo problem >&2"), how).success());
    CHECK(read_file(directory.file("out")) == "some input\n");
    CHECK(read_file(directory.file("err")) == "problem\n");
    CHECK(result_of(cohort::function<first_bytes>(0), how) == "some input\n");
    CHECK(read_file(directory.file("out")).empty());
}

TEST_CASE("environment: a file that workers share is emptied once, then appended to") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto file = directory.write("out", "what was there before\n");
    const auto how = cohort::options(8).stdout_to(file).stderr_to(file);
    CHECK(ended(cohort::command("sh", "-c", "echo out $COHORT_INDEX; echo err $COHORT_INDEX >&2"),
                how)
              .success());
    auto lines = lines_of(read_file(file));
    std::sort(lines.begin(), lines.end());
    std::vector<std::string> expected;
    for (const auto* stream : {"err ", "out "})
        for (int index = 0; index < 8; ++index)
            expected.push_back(stream + std::to_string(index));
    CHECK(lines == expected);
    // The next group empties it again.
    CHECK(ended(cohort::command("echo", "anew"), cohort::options(1).stdout_to(file)).success());
    CHECK(read_file(file) == "anew\n");
}

TEST_CASE("environment: a descriptor is duplicated in the call and may be closed after it") {
    const leak_guard guard;
    const scratch_directory directory;
    open_file a(directory.write("a", "file a"));
    open_file b(directory.write("b", "file b"));
    auto how = cohort::options(1).fd(a.get(), 7).fd(b.get(), 200);
    a.close();
    b.close();
    open_file other("/dev/null");  // most likely at one of their numbers
    CHECK(result_of(cohort::function<first_bytes>(7), how) == "file a");
    CHECK(result_of(cohort::function<first_bytes>(200), how) == "file b");
    CHECK(result_of(cohort::function<first_bytes>(8), how) == "(closed)");
    CHECK(printed_by(cohort::command("cat", "/proc/self/fd/7", "/proc/self/fd/200"), how) ==
          "file afile b");
}

TEST_CASE("environment: descriptors can be given as 0, 1 and 2") {
    const leak_guard guard;
    const scratch_directory directory;
    const open_file in(directory.write("in", "input\n"));
    const open_file out(directory.file("out"), O_WRONLY | O_CREAT);
    const open_file err(directory.file("err"), O_WRONLY | O_CREAT);
    const auto how = cohort::options(1).fd(in.get(), 0).fd(out.get(), 1).fd(err.get(), 2);
    CHECK(ended(cohort::command("sh", "-c", "cat; echo problem >&2"), how).success());
    CHECK(read_file(directory.file("out")) == "input\n");
    CHECK(read_file(directory.file("err")) == "problem\n");
}

TEST_CASE("environment: descriptors can take each other's numbers") {
    const leak_guard guard;
    const scratch_directory directory;
    const open_file a(directory.write("a", "file a"));
    const open_file b(directory.write("b", "file b"));
    CHECK(printed_by(cohort::command("cat", fmt::format("/proc/self/fd/{}", a.get())),
                     cohort::options(1).fd(a.get(), b.get()).fd(b.get(), a.get())) == "file b");
    // The duplicates, too, stand at numbers where others are put: the next free ones.
    const open_file next("/dev/null");
    const int first = ::fcntl(next.get(), F_DUPFD_CLOEXEC, 3);
    const int second = ::fcntl(next.get(), F_DUPFD_CLOEXEC, 3);
    ::close(first);
    ::close(second);
    const auto swapped = cohort::options(1).fd(a.get(), second).fd(b.get(), first);
    CHECK(result_of(cohort::function<first_bytes>(first), swapped) == "file b");
    CHECK(result_of(cohort::function<first_bytes>(second), swapped) == "file a");
    const auto chained = cohort::options(1).fd(a.get(), 1000).fd(b.get(), 60).fd(a.get(), 61);
    CHECK(result_of(cohort::function<first_bytes>(60), chained) == "file b");
    CHECK(result_of(cohort::function<first_bytes>(61), chained) == "file a");
    CHECK(result_of(cohort::function<first_bytes>(1000), chained) == "file a");
}

TEST_CASE("environment: the host's own standard streams may be closed") {
    const leak_guard guard;
    const scratch_directory directory;
    std::vector<int> saved;
    for (int fd = 0; fd < 3; ++fd) {
        saved.push_back(::fcntl(fd, F_DUPFD_CLOEXEC, 10));
        ::close(fd);
    }
    std::string error, found;
    try {
        const auto how = cohort::options(2).stdout_to(directory.file("out"));
        (void)ended(cohort::command("echo", "here"), how);
        found = result_of(cohort::function<directory_of>());
    } catch (const std::exception& e) {
        error = e.what();
    }
    for (int fd = 0; fd < 3; ++fd) {
        ::dup2(saved[static_cast<std::size_t>(fd)], fd);
        ::close(saved[static_cast<std::size_t>(fd)]);
    }
    CHECK(error == "");
    CHECK(read_file(directory.file("out")) == "here\nhere\n");
    CHECK(found == fs::current_path().string());
}

TEST_CASE("environment: command_for makes a command for each worker, in the call and in order") {
    const leak_guard guard;
    const scratch_directory directory;
    std::vector<int> made;
    const auto make = [&](int index) {
        made.push_back(index);
        return cohort::command("sh", "-c",
                               fmt::format("echo {} > out{}; exit {}", index, index, index));
    };
    auto pending = cohort::spawn(
        cohort::command_for(make),
        cohort::options(3).working_directory(directory.path()).success_codes(0, 1, 2));
    CHECK(made == std::vector<int>{0, 1, 2});
    cohort::report report;
    run_coroutine(finish(std::move(pending), report));
    for (const auto& worker : report.outcomes)
        CHECK(worker.status.exit_code() == worker.index);
    CHECK(report.success());
    for (const int index : made)
        CHECK(read_file(directory.file(fmt::format("out{}", index))) == fmt::format("{}\n", index));
}

}  // namespace environment_test
