// SPDX-License-Identifier: BSL-1.0
// A host that does what a test program cannot do to itself.
//   other_host pinned                     a pinned thread starts the first group, a free one the
//                                         second: each prints the CPUs of its worker
//   other_host parent_death_signal        prints its own
//   other_host without_stdio              closes its standard streams, then prints what its workers
//                                         have in their places, a line for each start method
//   other_host few_processes UID LIMIT N LOGS
//                                         as user UID with at most LIMIT processes, starts N
//                                         workers with logs in LOGS: prints the error, then whether
//                                         children are left
//   other_host receives NAME [names] [locked]
//                                         gets an array in the file NAME of /dev/shm, whose sender
//                                         has ended: prints its first element, or the error. With
//                                         "names" it accepts arrays with names, with "locked" the
//                                         sender has locked the file as the library does
#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace other_host {
namespace {

asio::awaitable<void> run_whole(cohort::command work, cohort::options how) {
    (void)co_await cohort::run(std::move(work), std::move(how));
}

/// Runs the group to its end on this thread. @throws the exception of the group
void run(cohort::command work, cohort::options how) {
    asio::io_context context;
    std::exception_ptr error;
    asio::co_spawn(context, run_whole(std::move(work), std::move(how)),
                   [&error](std::exception_ptr e) { error = e; });
    context.run();
    if (error)
        std::rethrow_exception(error);
}

int pinned() {
    const cohort::command cpus("grep", "Cpus_allowed_list:", "/proc/self/status");
    cpu_set_t before, one;
    sched_getaffinity(0, sizeof before, &before);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &before))
        ++cpu;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    run(cpus, 1);
    sched_setaffinity(0, sizeof before, &before);
    run(cpus, 1);
    return 0;
}

std::string stdio(int) {
    std::string text;
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        std::error_code error;
        const auto file =
            std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd), error).string();
        text += error ? "closed " : file + " ";
    }
    return text;
}

asio::awaitable<void> print_stdio(int output, cohort::start_method method) {
    const auto told =
        co_await cohort::run(cohort::function<stdio>(), cohort::options(1).start_method(method));
    const auto line = told.outcomes[0].result<std::string>() + "\n";
    (void)!::write(output, line.data(), line.size());
}

int without_stdio() {
    const int output = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        ::close(fd);
    using enum cohort::start_method;
    for (const auto method : {spawn, fork, forkserver}) {
        asio::io_context context;
        asio::co_spawn(context, print_stdio(output, method), asio::detached);
        context.run();
    }
    return 0;
}

int parent_death_signal() {
    int signo = -1;
    prctl(PR_GET_PDEATHSIG, &signo);
    fmt::print("{}\n", signo);
    return 0;
}

int few_processes(uid_t user, rlim_t limit, int workers, const char* logs) {
    if (chdir("/") != 0 || setgroups(0, nullptr) != 0 || setgid(user) != 0 || setuid(user) != 0) {
        std::perror("setuid");
        return 2;
    }
    prctl(PR_SET_DUMPABLE, 1);  // makes its files in /proc its own again
    // Now the library's threads are there, which count as processes.
    run(cohort::command("true"), cohort::options(1).logs(cohort::logs(logs).run_id("first")));
    rlimit before;
    getrlimit(RLIMIT_NPROC, &before);
    const rlimit few{limit, before.rlim_max};
    setrlimit(RLIMIT_NPROC, &few);
    try {
        run(cohort::command("sleep", 1000),
            cohort::options(workers).logs(cohort::logs(logs).run_id("few")));
    } catch (const cohort::spawn_error& e) {
        fmt::print("{}\nstage {}, error {}\n", e.what(), e.stage(), e.code().value());
    }
    setrlimit(RLIMIT_NPROC, &before);
    const bool none = waitpid(-1, nullptr, WNOHANG | __WALL) < 0 && errno == ECHILD;
    fmt::print("{}\n", none ? "no children" : "children are left");
    return 0;
}

int receives(const std::string& name, bool accepts_names, bool locks) {
    if (accepts_names)
        cohort::set_sharing_strategy(cohort::sharing_strategy::file_system);
    cohort::queue<cohort::shared_array<int>> arrays;
    arrays.keep_both_ends();
    const pid_t sender = fork();
    if (sender == 0) {
        const int file = open(("/dev/shm/" + name).c_str(), O_RDWR | O_CLOEXEC);
        if (locks && flock(file, LOCK_SH) != 0)
            _exit(1);
        const std::size_t shape[] = {1};
        arrays.writer().put(
            cohort::shared_array<int>::from_descriptor(file, 0, shape, cohort::trust_unsealed));
        _exit(0);
    }
    int status = -1;
    if (waitpid(sender, &status, 0) != sender || status != 0)
        return 2;
    try {
        fmt::print("{}\n", (*arrays.try_get())(0));
    } catch (const cohort::sharing_error& e) {
        fmt::print("{}\n", e.what());
    }
    return 0;
}

}  // namespace

int program(int argc, char** argv) {
    cohort::worker_main(argc, argv);
    const std::string_view mode = argc > 1 ? argv[1] : "";
    if (mode == "pinned")
        return pinned();
    if (mode == "parent_death_signal")
        return parent_death_signal();
    if (mode == "without_stdio")
        return without_stdio();
    if (mode == "few_processes" && argc == 6)
        return few_processes(static_cast<uid_t>(std::atoi(argv[2])),
                             static_cast<rlim_t>(std::atoi(argv[3])), std::atoi(argv[4]), argv[5]);
    if (mode == "receives" && argc >= 3) {
        const std::set<std::string_view> how(argv + 3, argv + argc);
        return receives(argv[2], how.contains("names"), how.contains("locked"));
    }
    return 2;
}

}  // namespace other_host
