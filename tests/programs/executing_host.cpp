// SPDX-License-Identifier: BSL-1.0
// A host whose other threads start programs by themselves while groups start, live and end.
//   executing_host METHOD     a start_method, or 3: commands
// Exits with 0 if all is as it must be, else prints what is not.
#include <cohort/cohort.hpp>

#include <asio.hpp>

#include "../support/sanitizers.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <csignal>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace executing_host {
namespace {

const int rounds = cohort::test::how_many(40, 10);
constexpr int commands = 3;
int method = 0;

void check(bool is_so, const char* fact) {
    if (is_so)
        return;
    std::fprintf(stderr, "executing_host: not so: %s\n", fact);
    ::_exit(1);
}

// --- what the other threads do

const char* const list_descriptors[] = {"sh", "-c", "exec ls -l /proc/self/fd", nullptr};
const char* const sleep_long[] = {"sleep", "1000", nullptr};

std::string read_all(int fd) {
    std::string text;
    std::array<char, 512> buffer;
    for (ssize_t count; (count = ::read(fd, buffer.data(), buffer.size())) > 0;)
        text.append(buffer.data(), static_cast<std::size_t>(count));
    return text;
}

pid_t by_posix_spawn(const char* const* argv, int output) {
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    pid_t pid = 0;
    check(::posix_spawnp(&pid, argv[0], &actions, nullptr, const_cast<char**>(argv), environ) == 0,
          "posix_spawn starts it");
    ::posix_spawn_file_actions_destroy(&actions);
    return pid;
}

pid_t by_fork(const char* const* argv, int output) {
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::dup2(output, STDOUT_FILENO);
        ::execvp(argv[0], const_cast<char**>(argv));
        ::_exit(127);
    }
    return pid;
}

std::string printed_by(pid_t (*start)(const char* const*, int)) {
    std::array<int, 2> pipe{};
    check(::pipe2(pipe.data(), O_CLOEXEC) == 0, "pipe2");
    const pid_t pid = start(list_descriptors, pipe[1]);
    ::close(pipe[1]);
    auto text = read_all(pipe[0]);
    ::close(pipe[0]);
    int status = 0;
    check(::waitpid(pid, &status, 0) == pid && status == 0, "the program is this host's child");
    return text;
}

std::string printed_by_popen() {
    std::FILE* const pipe = ::popen(list_descriptors[2], "re");
    check(pipe != nullptr, "popen starts it");
    auto text = read_all(::fileno(pipe));
    check(::pclose(pipe) == 0, "the program is this host's child");
    return text;
}

/// The target of each descriptor in a listing.
std::map<int, std::string> descriptors_in(const std::string& text) {
    std::istringstream in(text);
    std::map<int, std::string> found;
    for (std::string line; std::getline(in, line);) {
        const auto arrow = line.find(" -> ");
        if (arrow == line.npos)
            continue;
        const auto number = line.rfind(' ', arrow - 1) + 1;
        found[std::stoi(line.substr(number))] = line.substr(arrow + 4);
    }
    return found;
}

/// The descriptors of a program that this host starts while it has no group.
std::map<int, std::string> usual_descriptors;

/// UndefinedBehaviorSanitizer tests by a pipe whether memory is mapped. A program that is executed
/// at that moment inherits the pipe.
bool is_of_sanitizer(const std::string& file) {
    return cohort::test::under_asan && file.starts_with("pipe:");
}

/// Checks that the program has no descriptor of the library or of a worker's start.
void check_descriptors(const std::string& text) {
    const auto found = descriptors_in(text);
    check(!found.empty(), "the program lists its descriptors");
    for (const auto& [number, file] : found)
        if (!usual_descriptors.contains(number) && !is_of_sanitizer(file)) {
            std::fprintf(stderr, "executing_host: descriptor %d: %s\n", number, file.c_str());
            check(false, "a program has what the host gives to all");
        }
}

/// Checks that no other process keeps a pipe of this thread open.
void check_end_of_pipe() {
    std::array<int, 2> pipe{};
    check(::pipe2(pipe.data(), O_CLOEXEC) == 0, "pipe2");
    ::close(pipe[1]);
    check(read_all(pipe[0]).empty(), "a pipe of the host's comes to its end");
    ::close(pipe[0]);
}

void execute(int kind) {
    for (int i = 0; i < rounds; ++i) {
        if (kind == 0)
            check_descriptors(printed_by_popen());
        else
            check_descriptors(printed_by(kind == 1 ? by_posix_spawn : by_fork));
        check_end_of_pipe();
    }
}

// --- the groups

constexpr int gate = 8;
int square(int index) { return index * index; }
void waits(int) {
    char byte;
    (void)!::read(gate, &byte, 1);
}

cohort::options two() {
    const cohort::options how(2);
    return method == commands
               ? how
               : cohort::options(how).start_method(static_cast<cohort::start_method>(method));
}

void run(asio::awaitable<void> body) {
    asio::io_context context;
    asio::co_spawn(context, std::move(body), [](std::exception_ptr error) {
        if (error)
            std::rethrow_exception(error);
    });
    context.run();
}

asio::awaitable<cohort::group> start_waiting(int pipe) {
    if (method == commands)
        co_return co_await cohort::spawn(cohort::command("sh", "-c", "read line <&8; :"),
                                         two().fd(pipe, gate));
    co_return co_await cohort::spawn(cohort::function<waits>(), two().fd(pipe, gate));
}

asio::awaitable<void> run_one() {
    if (method == commands)
        (void)co_await cohort::run(cohort::command("true"), two());
    else
        (void)co_await cohort::run(cohort::function<square>(), two());
}

asio::awaitable<void> live(const std::atomic<int>& busy, std::vector<pid_t>& programs) {
    std::array<int, 2> pipe{};
    check(::pipe2(pipe.data(), O_CLOEXEC) == 0, "pipe2");
    auto early = co_await start_waiting(pipe[0]);
    auto killed = co_await start_waiting(pipe[0]);
    // These programs outlive both groups, and hold all descriptors that they could inherit.
    for (int i = 0; i < 4; ++i)
        programs.push_back((i % 2 == 0 ? by_posix_spawn : by_fork)(sleep_long, STDOUT_FILENO));
    killed.signal(SIGKILL);
    const auto told = co_await killed.wait();
    check(told.outcomes.at(0).status.signal() == SIGKILL, "the end of a worker is seen");
    while (busy > 0)
        co_await run_one();
    ::close(pipe[1]);
    check(co_await early.join(), "a group comes to its end");
}

}  // namespace

int program(int argc, char** argv) {
    cohort::worker_main(argc, argv);
    method = argc > 1 ? std::atoi(argv[1]) : 0;
    usual_descriptors = descriptors_in(printed_by(by_posix_spawn));
    std::vector<pid_t> programs;
    run(run_one());  // makes the library start its threads
    std::atomic<int> busy = 3;
    std::vector<std::thread> threads;
    for (int kind = 0; kind < 3; ++kind)
        threads.emplace_back([kind, &busy] {
            execute(kind);
            --busy;
        });
    run(live(busy, programs));
    for (auto& thread : threads)
        thread.join();
    for (const pid_t program : programs) {
        ::kill(program, SIGKILL);
        check(::waitpid(program, nullptr, 0) == program, "a program is still this host's child");
    }
    return 0;
}

}  // namespace executing_host
