// SPDX-License-Identifier: BSL-1.0
// What workers print on the host's own streams, by programs/printing_host: into pipes, into closed
// streams, into a pipe whose reader is gone, and on a terminal.
#include "live_support.hpp"
#include "procfs.hpp"
#include "start_support.hpp"

#include <algorithm>
#include <cstdlib>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include <poll.h>
#include <stdlib.h>

namespace console_test {

using namespace cohort::test;

namespace {

std::string read_to_end(int fd) {
    std::string text;
    char part[4096];
    ssize_t size = 0;
    while ((size = ::read(fd, part, sizeof part)) > 0)  // a terminal ends with EIO
        text.append(part, static_cast<std::size_t>(size));
    return text;
}

std::string read_until(int fd, const std::string& last) {
    std::string text;
    char part[4096];
    while (!text.ends_with(last)) {
        const auto size = ::read(fd, part, sizeof part);
        REQUIRE(size > 0);
        text.append(part, static_cast<std::size_t>(size));
    }
    return text;
}

class printed {
public:
    std::string out;
    std::string err;
    std::string report;  // what the host says of its workers and descriptors; "": all is well
};

cohort::command host(const std::string& how, int size, const std::vector<std::string>& scripts) {
    return cohort::command(COHORT_PROGRAM_PRINTING_HOST, "console", how, size).args(scripts);
}

/// Runs a host in a directory of its own, and takes its report.
void run_host(const cohort::command& program, cohort::options how, printed& into) {
    const scratch_directory directory;
    const auto ended_host = ended(program, how.working_directory(directory.path()));
    CHECK_MESSAGE(ended_host.success(), fmt::format("{}", ended_host));
    CHECK(names_in(directory.path()).count("report") == 1);
    into.report = read_file(directory.file("report"));
}

/// What a host prints into pipes.
printed printed_by_host(const cohort::command& program) {
    printed made;
    pipe_pair out;
    pipe_pair err;
    auto read_out = std::async(std::launch::async, read_to_end, out.reads());
    auto read_err = std::async(std::launch::async, read_to_end, err.reads());
    run_host(program, cohort::options(1).fd(out.writes(), 1).fd(err.writes(), 2), made);
    out.close_writes();
    err.close_writes();
    made.out = read_out.get();
    made.err = read_err.get();
    return made;
}

printed printed_by_host(const std::string& how, int size, const std::string& script) {
    return printed_by_host(host(how, size, {script}));
}

std::multiset<std::string> set_of(const std::vector<std::string>& lines) {
    return {lines.begin(), lines.end()};
}

/// A terminal with a host on it.
std::string printed_on_terminal(const cohort::command& program, std::string& report) {
    const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    REQUIRE(terminal >= 0);
    REQUIRE(::grantpt(terminal) == 0);
    REQUIRE(::unlockpt(terminal) == 0);
    open_file side(::ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
    auto reads = std::async(std::launch::async, read_to_end, terminal);
    printed made;
    run_host(program, cohort::options(1).fd(side.get(), 0).fd(side.get(), 1).fd(side.get(), 2),
             made);
    side.close();
    const auto text = reads.get();
    ::close(terminal);
    report = made.report;
    return text;
}

}  // namespace

TEST_CASE("console: each line gets the tag of its worker, on the stream of the same name") {
    const leak_guard guard;
    const auto script = "echo out $LOCAL_RANK; echo err $LOCAL_RANK >&2";
    const auto tagged = printed_by_host("all", 2, script);
    CHECK(set_of(lines_of(tagged.out)) == set_of({"[0]: out 0", "[1]: out 1"}));
    CHECK(set_of(lines_of(tagged.err)) == set_of({"[0]: err 0", "[1]: err 1"}));
    CHECK(tagged.report == "");
    const auto own = printed_by_host("own_tag", 2, script);
    CHECK(set_of(lines_of(own.out)) == set_of({"0 of 2> out 0", "1 of 2> out 1"}));
    const auto plain = printed_by_host("untagged", 1, script);
    CHECK(plain.out == "out 0\n");
    CHECK(plain.err == "err 0\n");
    // The other stream stays the host's.
    const auto half = printed_by_host("plain_err", 1, script);
    CHECK(half.out == "[0]: out 0\n");
    CHECK(half.err == "err 0\n");
}

TEST_CASE("console: only the chosen workers are shown; the others are read into nothing") {
    const leak_guard guard;
    const auto script = "seq 1 50000 >&2; echo $LOCAL_RANK";
    const auto some = printed_by_host("some", 4, script);
    CHECK(set_of(lines_of(some.out)) == set_of({"[0]: 0", "[2]: 2"}));
    CHECK(lines_of(some.err).size() == 100'000);
    const auto odd = printed_by_host("odd", 4, script);
    CHECK(set_of(lines_of(odd.out)) == set_of({"[1]: 1", "[3]: 3"}));
    CHECK(some.report + odd.report == "");
}

TEST_CASE("console: a line comes whole and a last line gets a newline, however it was written") {
    const leak_guard guard;
    const scratch_directory directory;
    // Two workers print one character by turns.
    for (const auto* name : {"0", "1"})
        REQUIRE(::mkfifo(directory.file(name).c_str(), 0600) == 0);
    const auto by_turns = fmt::format(
        "cd {}; exec 5<>0 6<>1; test $LOCAL_RANK = 1 || echo >&5;"
        "for i in 1 2 3 4; do if test $LOCAL_RANK = 0; then read x <&5; printf x; echo >&6;"
        "else read x <&6; printf x; echo >&5; fi; done",
        directory.path());
    const auto turns = printed_by_host("all", 2, by_turns);
    CHECK(set_of(lines_of(turns.out)) == set_of({"[0]: xxxx", "[1]: xxxx"}));
    CHECK(turns.out.size() == 20);
    CHECK(printed_by_host("all", 1, "printf 'one\\ntwo'").out == "[0]: one\n[0]: two\n");
    CHECK(printed_by_host("all", 1, "printf 'one\\n\\r\\n\\n'").out == "[0]: one\n[0]: \n[0]: \n");
    CHECK(printed_by_host("all", 1, ":").out == "");
}

TEST_CASE("console: a progress bar is shown once, in its last state") {
    const leak_guard guard;
    const auto bar = "i=0; while [ $i -lt 10000 ]; do i=$((i+1)); printf '\\r%s of 10000' $i; done";
    CHECK(printed_by_host("all", 1, bar).out == "[0]: 10000 of 10000\n");
    CHECK(printed_by_host("all", 1, bar + std::string("; echo; echo done")).out ==
          "[0]: 10000 of 10000\n[0]: done\n");
}

TEST_CASE("console: two groups at once keep their lines whole") {
    const leak_guard guard;
    const auto script = [](const char* name) {
        return "exec seq -f \"" + std::string(name) + " $LOCAL_RANK %.0f\" 1 20000";
    };
    const auto both = printed_by_host(host("all", 2, {script("a"), script("b")}));
    std::map<std::string, int> latest;
    for (const auto& line : lines_of(both.out)) {
        int index = -1, rank = -1, number = -1, end = 0;
        char name = '?';
        const int found =
            std::sscanf(line.c_str(), "[%d]: %c %d %d%n", &index, &name, &rank, &number, &end);
        REQUIRE_MESSAGE((found == 4 && static_cast<std::size_t>(end) == line.size()), line);
        REQUIRE_MESSAGE(index == rank, line);
        REQUIRE_MESSAGE(number == ++latest[name + std::to_string(rank)], line);
    }
    CHECK(latest ==
          std::map<std::string, int>{{"a0", 20000}, {"a1", 20000}, {"b0", 20000}, {"b1", 20000}});
    CHECK(both.report == "");
}

TEST_CASE("console: a pipe gets no escape sequence of ours") {
    const leak_guard guard;
    const auto red = "printf '\\033[31mred\\n'; echo plain";
    CHECK(printed_by_host("all", 1, red).out == "[0]: \033[31mred\n[0]: plain\n");
}

TEST_CASE("console: on a terminal tags have colours, and a line's colour ends with it") {
    const leak_guard guard;
    const auto red = host("all", 1, {"printf '\\033[31mred\\n'; echo plain"});
    std::string report;
    const auto colourless = printed_on_terminal(cohort::command(red).env("NO_COLOR", "1"), report);
    CHECK(colourless == "[0]: \033[31mred\033[0m\r\n[0]: plain\r\n");
    CHECK(report == "");
    const auto coloured = printed_on_terminal(cohort::command(red).unset_env("NO_COLOR"), report);
    const auto lines = lines_of(coloured);
    REQUIRE(lines.size() == 2);
    const auto tag_end = lines[1].find("plain");
    REQUIRE(tag_end != std::string::npos);
    const auto tag = lines[1].substr(0, tag_end);
    CHECK(tag.find("\033[") == 0);
    CHECK(tag.find("[0]: ") != std::string::npos);
    CHECK(tag.find("\033[0m") == tag.size() - 4);
    CHECK(lines[0] == tag + "\033[31mred\033[0m\r");
    CHECK(report == "");
}

TEST_CASE("console: a closed stream of the host is reported in a note and disturbs nobody") {
    const leak_guard guard;
    const auto program = fmt::format("exec {} console all 2 'echo text; echo text >&2; seq 1 "
                                     "50000' >&-",
                                     COHORT_PROGRAM_PRINTING_HOST);
    const auto closed = printed_by_host(cohort::command("sh", "-c", program));
    CHECK(closed.out == "");
    CHECK(set_of(lines_of(closed.err)) == set_of({"[0]: text", "[1]: text"}));
    const std::string note = ": exited: stdout: Bad file descriptor after 0 bytes";
    CHECK(set_of(lines_of(closed.report)) == set_of({"0" + note, "1" + note}));
}

TEST_CASE("console: when the reader of the host's stream dies, the host and its workers live on") {
    const leak_guard guard;
    printed made;
    {
        pipe_pair out;
        out.close_reads();
        run_host(host("all", 1, {"seq 1 100000"}), cohort::options(1).fd(out.writes(), 1), made);
    }
    CHECK(made.report == "0: exited: stdout: Broken pipe after 0 bytes\n");
    // In the middle: the reader has seen some of it.
    pipe_pair out;
    auto reads_little = std::async(std::launch::async, [&] {
        char part[1000];
        const auto size = ::read(out.reads(), part, sizeof part);
        out.close_reads();
        return size;
    });
    run_host(host("all", 1, {"seq 1 1000000"}), cohort::options(1).fd(out.writes(), 1), made);
    CHECK(reads_little.get() > 0);
    CHECK(made.report.find("0: exited: stdout: Broken pipe after ") == 0);
    CHECK(lines_of(made.report).size() == 1);
}

TEST_CASE("console: a host's stream that others have set to non-blocking mode loses nothing") {
    const leak_guard guard;
    pipe_pair out;
    REQUIRE(::fcntl(out.writes(), F_SETFL, O_NONBLOCK) == 0);
    auto reads = std::async(std::launch::async, read_to_end, out.reads());
    printed made;
    run_host(host("all", 1, {"seq 1 100000"}), cohort::options(1).fd(out.writes(), 1), made);
    out.close_writes();
    CHECK(lines_of(reads.get()).size() == 100'000);
    CHECK(made.report == "descriptor 1 does not block\n");  // as it was
}

TEST_CASE("console: a file that takes the place of a host's stream gets no text of workers") {
    const leak_guard guard;
    const scratch_directory directory;
    pipe_pair out;
    auto reads = std::async(std::launch::async, read_to_end, out.reads());
    {
        auto how = cohort::options(1).working_directory(directory.path()).fd(out.writes(), 1);
        const auto report = ended(cohort::command(COHORT_PROGRAM_PRINTING_HOST, "moved"), how);
        CHECK_MESSAGE(report.success(), fmt::format("{}", report));
    }
    out.close_writes();
    CHECK(reads.get() == "[0]: a\n[0]: b\n");
    CHECK(names_in(directory.path()).count("other") == 1);
    CHECK(read_file(directory.file("other")).empty());
}

/// A console whose filter shows no worker and says on which thread it is destroyed.
cohort::console noticed_console(std::promise<std::thread::id>& destroyed) {
    const auto say = [&destroyed](int*) { destroyed.set_value(std::this_thread::get_id()); };
    const auto filter = [kept = std::shared_ptr<int>(nullptr, say)](int) { return false; };
    return cohort::console().only(filter);
}

GROUP_TEST("console: no filter is destroyed on a thread of the library") {
    std::promise<std::thread::id> of_options, of_command;
    auto how = cohort::options(1).stdout_to(noticed_console(of_options));
    auto work = cohort::command("true").stderr_to(noticed_console(of_command));
    CHECK((co_await cohort::run(std::move(work), std::move(how))).success());
    for (auto* destroyed : {&of_options, &of_command})
        CHECK(destroyed->get_future().get() == std::this_thread::get_id());
}

GROUP_TEST("console: drop_oldest says how much was left out, to the byte") {
    const scratch_directory directory;
    ready told(executor);
    gate hold;
    pipe_pair out;
    auto how = cohort::options(1).working_directory(directory.path()).fd(out.writes(), 1);
    how.fd(told.child_end(), ready::number).fd(hold.child_end(), gate::number);
    const std::vector<std::string> scripts(1, "seq 1 400000; echo last");
    auto group = co_await cohort::spawn(host("dropping", 1, scripts), how);
    how = cohort::options();  // it holds the pipe, too
    out.close_writes();
    co_await told.wait();  // the group has ended although nobody has read
    const auto text = read_until(out.reads(), "[0]: last\n");
    std::size_t lines = 0, bytes = 0, lost_lines = 0, lost_bytes = 0;
    for (auto line : lines_of(text)) {
        REQUIRE(line.find("[0]: ") == 0);
        line.erase(0, 5);
        if (line.find(" left out") == std::string::npos) {
            ++lines;
            bytes += line.size() + 1;
            continue;
        }
        std::erase(line, ',');
        std::size_t more_lines = 0, more_bytes = 0;
        REQUIRE(std::sscanf(line.c_str(), "... %zu lines %zu bytes left out", &more_lines,
                            &more_bytes) == 2);
        lost_lines += more_lines;
        lost_bytes += more_bytes;
    }
    CHECK(lost_lines > 0);
    CHECK(lines + lost_lines == 400'001);
    CHECK(bytes + lost_bytes == 2'688'900);
    hold.open();
    const auto report = co_await group.wait();
    CHECK(report.success());
    CHECK(read_file(directory.file("report")).find("stdout: ") != std::string::npos);
}

}  // namespace console_test
