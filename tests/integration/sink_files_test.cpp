// SPDX-License-Identifier: BSL-1.0
// Files as the place for what workers print: their names, who opens them, and what is in them.
#include "guardian_support.hpp"
#include "procfs.hpp"
#include "start_support.hpp"

#include <filesystem>
#include <map>
#include <regex>
#include <tuple>

#include <sys/stat.h>

namespace sink_files_test {

using namespace cohort::test;
namespace fs = std::filesystem;

namespace {

cohort::command shell(const std::string& script) { return cohort::command("sh", "-c", script); }

/// All byte values, in runs of different lengths.
std::string all_bytes() {
    std::string text;
    for (int value = 0; value < 256; ++value)
        text.append(static_cast<std::size_t>(1 + value * 7 % 61), static_cast<char>(value));
    return text;
}

void write_all_bytes(int) {
    const std::string text = all_bytes();
    for (std::size_t at = 0, size = 1; at < text.size(); at += size, size = size % 97 + 5) {
        const auto part = text.substr(at, size);
        if (::write(STDOUT_FILENO, part.data(), part.size()) != static_cast<ssize_t>(part.size()))
            ::_exit(1);
    }
}

int flags_of_streams(int) {
    return ::fcntl(STDOUT_FILENO, F_GETFL) | ::fcntl(STDERR_FILENO, F_GETFL);
}

std::tuple<unsigned long, unsigned long> file_at(int fd) {
    struct stat found {};
    ::fstat(fd, &found);
    return {found.st_dev, found.st_ino};
}

bool same_streams(int, std::tuple<unsigned long, unsigned long> out,
                  std::tuple<unsigned long, unsigned long> err) {
    return file_at(STDOUT_FILENO) == out && file_at(STDERR_FILENO) == err;
}

std::string host_name() {
    char name[256] = {};
    ::gethostname(name, sizeof name - 1);
    return name;
}

/// The numbers of the lines "<tag> <number>" in a text, by tag. Other lines fail the case.
std::map<int, std::vector<int>> numbers_by_tag(const std::string& text) {
    std::map<int, std::vector<int>> numbers;
    for (const auto& line : lines_of(text)) {
        int tag = -1;
        int number = -1;
        int end = 0;
        const int found = std::sscanf(line.c_str(), "%d %d%n", &tag, &number, &end);
        REQUIRE_MESSAGE((found == 2 && static_cast<std::size_t>(end) == line.size()), line);
        numbers[tag].push_back(number);
    }
    return numbers;
}

std::vector<int> up_to(int last, int first = 1) {
    std::vector<int> numbers;
    for (int number = first; number <= last; ++number)
        numbers.push_back(number);
    return numbers;
}

/// Both ways of writing a file: the worker itself, and this process.
std::vector<cohort::options> both_ways(int size, const std::string& path, bool appends = false) {
    auto file = cohort::file(path);
    if (appends)
        file.append();
    return {cohort::options(size).stdout_to(file),
            cohort::options(size).stdout_to(file, cohort::capture())};
}

}  // namespace

TEST_CASE("sink files: a pattern names a file for each worker, and its directories are made") {
    const leak_guard guard;
    for (auto& how : both_ways(3, "{group}/{size}/{{x}}/{host}-{index:03}.{attempt}")) {
        const scratch_directory directory;
        const auto all = how.name("job").working_directory(directory.path());
        CHECK(ended(shell("echo worker $LOCAL_RANK"), all).success());
        for (int index = 0; index < 3; ++index)
            CHECK(read_file(
                      directory.file(fmt::format("job/3/{{x}}/{}-{:03}.0", host_name(), index))) ==
                  fmt::format("worker {}\n", index));
        CHECK(names_in(directory.file("job/3/{x}")).size() == 3);
    }
}

TEST_CASE("sink files: a relative path is relative to the directory of the worker") {
    const leak_guard guard;
    for (const auto& how : both_ways(2, "below/out")) {
        const scratch_directory directory;
        for (const auto* name : {"a", "b"})
            fs::create_directory(directory.file(name));
        const auto in_its_own = [&](int index) {
            return shell("echo $LOCAL_RANK").working_directory(directory.file(index ? "b" : "a"));
        };
        CHECK(ended(cohort::command_for(in_its_own), how).success());
        CHECK(read_file(directory.file("a/below/out")) == "0\n");
        CHECK(read_file(directory.file("b/below/out")) == "1\n");
    }
}

TEST_CASE("sink files: a file is emptied at the start, or kept with append") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto path = directory.file("{index}");
    for (const int size : {1, 2})
        for (std::size_t way = 0; way < 2; ++way) {
            for (int index = 0; index < size; ++index)
                directory.write(std::to_string(index), "before\n");
            CHECK(ended(shell("echo now"), both_ways(size, path, true)[way]).success());
            CHECK(read_file(directory.file("0")) == "before\nnow\n");
            CHECK(ended(shell("echo again"), both_ways(size, path)[way]).success());
            CHECK(read_file(directory.file("0")) == "again\n");
        }
    directory.write("one", "before\n");
    const auto one = cohort::file(directory.file("one"));
    CHECK(ended(shell("echo now"), cohort::options(3).stdout_to(one)).success());
    CHECK(read_file(directory.file("one")) == "now\nnow\nnow\n");
}

TEST_CASE("sink files: a tag, and before it the time, stand before each line") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto in = [&](const char* name) { return cohort::file(directory.file(name)); };
    const auto how =
        cohort::options(1).stdout_to(in("tagged").tagged(), in("own").tagged("{index} of {size}> "),
                                     in("timed").timestamps(), in("both").tagged().timestamps());
    CHECK(ended(shell("printf 'one\\ntwo'"), how).success());
    CHECK(read_file(directory.file("tagged")) == "[0]: one\n[0]: two\n");
    CHECK(read_file(directory.file("own")) == "0 of 1> one\n0 of 1> two\n");
    const std::string time = R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z )";
    CHECK(std::regex_match(read_file(directory.file("timed")),
                           std::regex(time + "one\n" + time + "two\n")));
    CHECK(std::regex_match(read_file(directory.file("both")),
                           std::regex(time + "\\[0\\]: one\n" + time + "\\[0\\]: two\n")));
}

TEST_CASE("sink files: a rotation cuts no line, and keeps as many files as it should") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto log = cohort::file(directory.file("log")).rotate(64 * 1024, 3);
    const auto script = "exec seq -f \"$LOCAL_RANK %.0f\" 1 60000";
    for (const int size : {1, 3}) {
        CAPTURE(size);
        CHECK(ended(shell(script), cohort::options(size).stdout_to(log)).success());
        CHECK(names_in(directory.path()) ==
              std::set<std::string>{"log", "log.1", "log.2", "log.3"});
        std::string text;
        for (const auto* name : {"log.3", "log.2", "log.1", "log"}) {
            const auto part = read_file(directory.file(name));
            CHECK(part.size() <= 64 * 1024);
            CHECK((part.empty() || part.back() == '\n'));
            text += part;
        }
        CHECK(text.size() > 3 * 60 * 1024);
        for (const auto& [tag, numbers] : numbers_by_tag(text))
            CHECK(numbers == up_to(60000, numbers.front()));
    }
}

TEST_CASE("sink files: in one file of several workers lines are whole, in order and all there") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto script = "seq -f \"$LOCAL_RANK %.0f\" 1 20000; printf \"$LOCAL_RANK 20001\"";
    const auto both = "(seq -f \"$LOCAL_RANK %.0f\" 1 20000) & "
                      "seq -f \"1$LOCAL_RANK %.0f\" 1 20000 >&2; wait";
    CHECK(ended(shell(script), cohort::options(4).stdout_to(directory.file("out"))).success());
    auto found = numbers_by_tag(read_file(directory.file("out")));
    CHECK(found.size() == 4);
    for (const auto& [tag, numbers] : found)
        CHECK(numbers == up_to(20001));
    CHECK(read_file(directory.file("out")).back() == '\n');

    const auto one = cohort::file(directory.file("both"));
    const auto tee = cohort::options(2).output_to(one, cohort::capture());
    CHECK(ended(shell(both), tee).success());
    found = numbers_by_tag(read_file(directory.file("both")));
    CHECK(found.size() == 4);
    for (const auto& [tag, numbers] : found)
        CHECK(numbers == up_to(20000));
}

TEST_CASE("sink files: both streams to one path are merged, in the exact order") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto script = "i=0; while [ $i -lt 2000 ]; do echo 0 $i; i=$((i+1)); "
                        "echo 0 $i >&2; i=$((i+1)); done";
    const auto path = directory.file("one");
    const auto other = directory.path() + "/./x/../one";
    const std::vector<cohort::options> ways = {
        cohort::options(1).output_to(path), cohort::options(1).stdout_to(other).stderr_to(path),
        cohort::options(1).stdout_to(path).stderr_to(cohort::merge()),
        cohort::options(1).stdout_to(path, cohort::capture()).stderr_to(cohort::merge())};
    for (const auto& how : ways) {
        CHECK(ended(shell(script), how).success());
        CHECK(numbers_by_tag(read_file(path)).at(0) == up_to(1999, 0));
    }
}

GROUP_TEST("sink files: a worker's own plain file needs no descriptor here") {
    const scratch_directory directory;
    ready up(executor);
    gate hold;
    const auto path = directory.file("out");
    auto how = cohort::options(1).output_to(path).fd(up.child_end(), ready::number);
    how.fd(hold.child_end(), gate::number);
    // The subshell leaves the shell's own descriptors alone.
    auto group = co_await cohort::spawn(shell("(echo >&9); read line <&8; echo end"), how);
    co_await up.wait();
    for (const auto& [fd, target] : open_descriptors())
        CHECK(target != path);
    const auto fds = "/proc/" + std::to_string(group.pids().at(0)) + "/fd";
    CHECK(fs::read_symlink(fds + "/1") == path);
    CHECK(fs::read_symlink(fds + "/2") == path);
    hold.open();
    CHECK(co_await group.join());
    CHECK(read_file(path) == "end\n");
}

TEST_CASE("sink files: a worker's own plain file survives this process") {
    const leak_guard guard;
    run_coroutine([]() -> asio::awaitable<void> {
        live_host host(co_await asio::this_coro::executor);
        co_await host.start(cohort::command(COHORT_PROGRAM_PRINTING_HOST, "outlived"));
        co_await host.held.wait();
        co_await host.kill();
        host.hold.open();
        co_await host.until_all_are_gone();
        CHECK(read_file(host.directory.file("outlived")) == "first\nlast\n");
    }());
}

TEST_CASE("sink files: no stream of a worker is in non-blocking mode") {
    const leak_guard guard;
    const scratch_directory directory;
    auto ways = both_ways(1, directory.file("out"));
    ways.push_back(cohort::options(1).output_to(cohort::discard()));
    ways.push_back(cohort::options(1).output_to(cohort::lines()).parent_death_signal(SIGTERM));
    for (const auto& how : ways) {
        const auto report = ended(cohort::function<flags_of_streams>(), how);
        CHECK((report.outcomes.at(0).result<int>() & O_NONBLOCK) == 0);
    }
}

TEST_CASE("sink files: all bytes come as they were written, in a file and beside other sinks") {
    const leak_guard guard;
    const scratch_directory directory;
    for (const auto& how : both_ways(1, directory.file("out"))) {
        const auto report = ended(cohort::function<write_all_bytes>(), how);
        CHECK(report.success());
        CHECK(read_file(directory.file("out")) == all_bytes());
        const auto& out = report.outcomes.at(0).out;
        CHECK((out.total == 0 || out.text() == all_bytes()));
        CHECK(report.outcomes.at(0).note() == "");
    }
}

TEST_CASE("sink files: a file of one worker has what it wrote, also of progress bars and of a last "
          "line without a newline") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto bar = "i=0; while [ $i -lt 10000 ]; do printf '\\r%s%%' $i; i=$((i+1)); done";
    std::string expected;
    for (int i = 0; i < 10000; ++i)
        expected += fmt::format("\r{}%", i);
    for (const auto& how : both_ways(1, directory.file("out"))) {
        CHECK(ended(shell(bar), how).success());
        CHECK(read_file(directory.file("out")) == expected);
    }
    const auto tagged = cohort::file(directory.file("tagged")).tagged();
    CHECK(ended(shell(bar), cohort::options(1).stdout_to(tagged)).success());
    const auto lines = read_file(directory.file("tagged"));
    CHECK(lines == "[0]: " + expected.substr(0, 65536) +
                       (expected.size() > 65536 ? "\n[0]: " + expected.substr(65536) : "") + "\n");
}

TEST_CASE("sink files: where workers outlive this process, only files of their own are allowed") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto file = cohort::file(directory.file("out"));
    const auto outliving = [](int size = 1) {
        return cohort::options(size).parent_death_signal(0);
    };
    const std::vector<cohort::options> refused = {
        outliving().stdout_to(cohort::capture()),
        outliving().stderr_to(cohort::console()),
        outliving().stdout_to(cohort::lines()),
        outliving().stdout_to(cohort::file(file).tagged()),
        outliving().stdout_to(cohort::file(file).rotate(1000)),
        outliving().stdout_to(file, cohort::file(directory.file("tee"))),
        outliving().stdin_from(cohort::feed()),
        outliving(2).stdout_to(file),
    };
    for (const auto& how : refused)
        CHECK(std::string(thrown_by<std::invalid_argument>(shell("true"), how).what())
                  .find("parent_death_signal(0)") != std::string::npos);
    CHECK(names_in(directory.path()).empty());
    const std::vector<cohort::options> allowed = {
        outliving().output_to(file),
        outliving(2).stdout_to(directory.file("{index}")).stderr_to(cohort::merge()),
        outliving().output_to(cohort::discard()),
        outliving().output_to(cohort::inherit()).stdin_from(cohort::bytes("text")),
    };
    for (const auto& how : allowed)
        CHECK(ended(shell("exec true"), how).success());
}

TEST_CASE("sink files: inherit gives this program's streams, and discard nothing") {
    const leak_guard guard;
    const auto how = cohort::options(1).output_to(cohort::inherit());
    const auto work = cohort::function<same_streams>(file_at(1), file_at(2));
    CHECK(ended(work, how).outcomes.at(0).result<bool>());
    const auto dropped = cohort::options(1).output_to(cohort::discard());
    const auto report = ended(shell("seq 1 100000; seq 1 100000 >&2"), dropped);
    CHECK(report.success());
    CHECK(report.outcomes.at(0).out == cohort::captured());
}

}  // namespace sink_files_test
