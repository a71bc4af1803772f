// SPDX-License-Identifier: BSL-1.0
// A host whose workers print.
//   printing_host console HOW SIZE SCRIPT...  to its own stdout and stderr. A group for each
//                       SCRIPT, all at once. Afterwards file "report" has a line for each worker
//                       that did not succeed or left a note, and one for each of descriptors 0 to 2
//                       that is in non-blocking mode. HOW: all, untagged, own_tag, some, odd,
//                       plain_err, dropping (then it says by descriptor 9 when the group has ended,
//                       and ends when 8 comes to its end)
//   printing_host outlived      a worker with a file of its own that is to outlive its host
//   printing_host flooding      workers that print without end into a file and a capture
//   printing_host clock         a worker that prints two lines with their times into file "clock";
//                       the wall clock is put forward by an hour between them
//   printing_host moved         a worker that prints to its host's stdout, before and after the
//                       host has put file "other" in its place
//   printing_host rotating      a worker that counts without end into a file that rotates
//   printing_host last_words    a worker that prints ten lines after its host's death
//   printing_host stubborn      a worker that prints without end, also after its host's death
//   printing_host exiting       exits while its workers print
//   printing_host crowded       takes pipes, not as root, until the kernel makes only small ones;
//                       then a worker gets and prints much. Exit code 0: all of it, 77: no small
//                       ones
//   printing_host copied        forks itself while its workers print; the copy exits
// Descriptors 8 and 9 are the gate and the ready pipe of the tests.
#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace printing_host {

/// By how many seconds the wall clock is put forward: see printing_host_clock.cpp.
std::atomic<long> forward_by = 0;

namespace {

using namespace std::chrono_literals;

constexpr int held = 9;
constexpr int gate = 8;

void say_ready() { (void)!::write(held, "\n", 1); }

void await_gate() {
    char byte;
    (void)!::read(gate, &byte, 1);
}

void run(asio::awaitable<void> body) {
    asio::io_context context;
    asio::co_spawn(context, std::move(body), [](std::exception_ptr error) {
        if (error)
            std::rethrow_exception(error);
    });
    context.run();
}

bool is_odd(int index) { return index % 2 == 1; }

cohort::options printing(std::string_view how, int size) {
    cohort::options made(size);
    made.on_failure(cohort::on_failure::keep_going);
    if (how == "untagged")
        made.output_to(cohort::console().tag(""));
    else if (how == "own_tag")
        made.output_to(cohort::console().tag("{index} of {size}> "));
    else if (how == "some")
        made.output_to(cohort::console().only(0, 2));
    else if (how == "odd")
        made.output_to(cohort::console().only(is_odd));
    else if (how == "plain_err")
        made.stdout_to(cohort::console());
    else if (how == "dropping")
        made.stdout_to(cohort::console().when_full(cohort::when_full::drop_oldest))
            .flush_timeout(10ms);
    else
        made.output_to(cohort::console());
    return made;
}

asio::awaitable<void> print(std::string_view how, int size, std::vector<std::string> scripts) {
    std::vector<cohort::group> groups;
    for (const auto& script : scripts) {
        auto group =
            co_await cohort::spawn(cohort::command("sh", "-c", script), printing(how, size));
        groups.push_back(std::move(group));
    }
    std::string notes;
    for (auto& group : groups) {
        const auto report = co_await group.wait();
        for (const auto& worker : report.outcomes)
            if (!worker.success() || !worker.note().empty())
                notes += fmt::format("{}: {}: {}\n", worker.index, to_string(worker.cause),
                                     worker.note());
    }
    if (how == "dropping") {
        say_ready();
        await_gate();
    }
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (const int flags = ::fcntl(fd, F_GETFL); flags >= 0 && (flags & O_NONBLOCK) != 0)
            notes += fmt::format("descriptor {} does not block\n", fd);
    std::ofstream("report") << notes;
}

asio::awaitable<void> hold(const char* script, cohort::options how) {
    auto group = co_await cohort::spawn(cohort::command("sh", "-c", script),
                                        how.fd(held, held).fd(gate, gate));
    co_await group.join();
}

asio::awaitable<void> put_clock_forward() {
    const auto stamped = cohort::file("clock").timestamps();
    auto group = co_await cohort::spawn(
        cohort::command("sh", "-c", "echo a; read line; echo b"),
        cohort::options(1).stdin_from(cohort::feed()).stdout_to(stamped, cohort::lines()));
    (void)co_await group.output();
    forward_by = 3'600;
    co_await group.write(0, "\n");
    co_await group.join();
}

asio::awaitable<void> move_stdout() {
    auto group = co_await cohort::spawn(cohort::command("sh", "-c", "echo a; read line; echo b"),
                                        cohort::options(1)
                                            .stdin_from(cohort::feed())
                                            .stdout_to(cohort::console(), cohort::lines()));
    (void)co_await group.output();
    // In one step, because a thread of the library may open a descriptor between two.
    ::dup2(::open("other", O_WRONLY | O_CREAT | O_CLOEXEC, 0600), STDOUT_FILENO);
    co_await group.write(0, "\n");
    co_await group.join();
}

constexpr const char* floods =
    "echo $LOCAL_RANK line; echo >&9; while :; do echo $LOCAL_RANK line; done";

asio::awaitable<void> fork_and_print() {
    const auto one = cohort::file("copied");
    auto group = co_await cohort::spawn(
        cohort::command("sh", "-c",
                        "seq -f \"$LOCAL_RANK %.0f\" 1 20000; echo >&9; read line <&8;"
                        "seq -f \"$LOCAL_RANK %.0f\" 20001 40000"),
        cohort::options(2).stdout_to(one, cohort::capture()).fd(held, held).fd(gate, gate));
    const pid_t copy = ::fork();
    if (copy == 0)
        std::exit(0);
    int status = -1;
    ::waitpid(copy, &status, 0);
    if (status == 0)
        say_ready();
    co_await group.join();
}

constexpr rlim_t needed_descriptors = 4'096;

/// Takes default pipes until pipe-user-pages-soft is used up, which does not count for root.
bool crowd() {
    constexpr uid_t nobody = 65534;
    const rlimit limit{needed_descriptors, needed_descriptors};
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0 ||
        (::geteuid() == 0 && ::setresuid(nobody, nobody, nobody) != 0))
        return false;
    int ends[2];
    for (rlim_t open = 0; open < needed_descriptors - 1'000 && ::pipe2(ends, O_CLOEXEC) == 0;
         open += 2)
        if (::fcntl(ends[0], F_GETPIPE_SZ) < 65'536)
            return true;
    return false;
}

asio::awaitable<void> print_much(bool& is_whole) {
    auto group = co_await cohort::spawn(
        cohort::command("sh", "-c", "seq 1 20000; wc -c >&2"),
        cohort::options(4).stdin_from(cohort::feed()).output_to(cohort::capture()));
    for (int index = 0; index < 4; ++index) {
        co_await group.write(index, std::string(300'000, 'x'));
        group.close_input(index);
    }
    is_whole = true;
    const auto report = co_await group.wait();
    for (const auto& worker : report.outcomes)
        is_whole &= worker.success() && worker.out.total == 108'894 &&
                    worker.err.text() == "300000\n" && worker.note().empty();
}

int run_crowded() {
    constexpr int nothing_to_see = 77;
    if (!crowd())
        return nothing_to_see;
    bool is_whole = false;
    run(print_much(is_whole));
    return is_whole ? 0 : 1;
}

}  // namespace

int program(int argc, char** argv) {
    cohort::worker_main(argc, argv);
    const std::string_view what = argc > 1 ? argv[1] : "";
    if (what == "console" && argc > 4)
        run(print(argv[2], std::atoi(argv[3]), {argv + 4, argv + argc}));
    else if (what == "outlived")
        run(hold("echo first; (echo >&9); read line <&8; echo last",
                 cohort::options(1).parent_death_signal(0).output_to("outlived")));
    else if (what == "flooding")
        run(hold(floods, cohort::options(2).stdout_to(cohort::file("flood"), cohort::capture())));
    else if (what == "clock")
        run(put_clock_forward());
    else if (what == "moved")
        run(move_stdout());
    else if (what == "rotating")
        run(hold("seq 1 2000; echo >&9; exec seq 2001 inf",
                 cohort::options(1).stdout_to(cohort::file("rotating").rotate(4'096, 3))));
    else if (what == "last_words")
        run(hold("trap 'kill $!; for i in 0 1 2 3 4 5 6 7 8 9; do echo $i; done; echo >&9; exit "
                 "42' TERM;"
                 "sh -c 'echo >&9; exec sleep 1000' & wait",
                 cohort::options(1).parent_death_signal(SIGTERM).output_to(cohort::capture())));
    else if (what == "stubborn")
        run(hold("trap '' TERM; echo >&9; while :; do echo line; done",
                 cohort::options(1).parent_death_signal(SIGTERM).grace_period(200ms).output_to(
                     cohort::capture())));
    else if (what == "crowded")
        return run_crowded();
    else if (what == "copied")
        run(fork_and_print());
    else if (what == "exiting") {
        static asio::io_context context;
        static cohort::group group;
        const auto one = cohort::file("exiting");
        auto how = cohort::options(2).stdout_to(one, cohort::capture());
        cohort::async_spawn(
            context,
            cohort::command("sh", "-c",
                            std::string("trap 'echo $LOCAL_RANK bye; exit' TERM; ") + floods),
            how.fd(held, held), [](std::exception_ptr, cohort::group g) { group = std::move(g); });
        context.run();
        await_gate();
        std::exit(7);
    }
    return 0;
}

}  // namespace printing_host
