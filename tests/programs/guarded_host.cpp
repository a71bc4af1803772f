// SPDX-License-Identifier: BSL-1.0
// A host that is killed while its workers have children of their own.
//   guarded_host METHOD LEVELS GRACE  two workers, each with two of its own, and so on; the last
//                                     level's are one function and three commands, each with a
//                                     child of its own in its process group
// Every process of the last level writes a byte to descriptor 9, which all processes hold. GRACE is
// in milliseconds. A child that ends because of SIGTERM writes its pid into "cleaned".
//   guarded_host plain            one worker without children
//   guarded_host forked           one worker with a child, and a copy of the host that lives until
//                                 descriptor 8 comes to its end
//   guarded_host served           starts a fork server, and writes a byte to descriptor 9; when
//                                 descriptor 8 comes to its end, starts a stubborn worker with a
//                                 child by that server, and writes another byte
//   guarded_host daemon METHOD    one function worker, which has a group with one command, which
//                                 has a daemon: in a session of its own, its pid in "daemon"
//   guarded_host unseen           prints what waitid() finds when its worker has been reaped
#include <cohort/cohort.hpp>

#include <asio.hpp>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include <sys/wait.h>
#include <unistd.h>

namespace guarded_host {
namespace {

constexpr int held = 9;
constexpr int gate = 8;

void say_ready() { (void)!::write(held, "\n", 1); }

cohort::options with_descriptor(int count, int method, int grace) {
    return cohort::options(count)
        .start_method(static_cast<cohort::start_method>(method))
        .grace_period(std::chrono::milliseconds(grace))
        .fd(held, held);
}

/// Runs a coroutine to its end.
void run(asio::awaitable<void> body) {
    asio::io_context context;
    asio::co_spawn(context, std::move(body), [](std::exception_ptr error) {
        if (error)
            std::terminate();
    });
    context.run();
}

/// A worker and its child. Both ignore SIGINT, SIGTERM and SIGHUP.
void stubborn(int) {
    for (const int signo : {SIGINT, SIGTERM, SIGHUP})
        std::signal(signo, SIG_IGN);
    (void)!::fork();
    say_ready();
    for (;;)
        ::pause();
}

cohort::command at_the_bottom(int index) {
    static constexpr const char* scripts[] = {
        // one that cleans up,
        "sh -c 'trap \"echo \\$\\$ >cleaned; exit\" TERM; echo >&9; while :; do sleep 1000 & wait; "
        "done' & echo >&9; exec sleep 1000",
        // one that is stopped,
        "sh -c 'echo >&9; kill -STOP $$; exec sleep 1000' & echo >&9; exec sleep 1000",
        // and one that is busy
        "trap '' TERM INT HUP; sh -c 'echo >&9; while :; do :; done' & echo >&9; exec sleep 1000",
    };
    return cohort::command("sh", "-c", scripts[index]);
}

void level(int, int method, int levels, int grace);

asio::awaitable<void> hold(int method, int levels, int grace) {
    if (levels > 1) {
        auto group = co_await cohort::spawn(cohort::function<level>(method, levels - 1, grace),
                                            with_descriptor(2, method, grace));
        co_await group.join();
        co_return;
    }
    auto functions =
        co_await cohort::spawn(cohort::function<stubborn>(), with_descriptor(1, method, grace));
    auto commands = co_await cohort::spawn(cohort::command_for(at_the_bottom),
                                           with_descriptor(3, method, grace));
    co_await commands.join();
}

void level(int, int method, int levels, int grace) { run(hold(method, levels, grace)); }

asio::awaitable<void> hold_one(const char* script) {
    auto group =
        co_await cohort::spawn(cohort::command("sh", "-c", script), with_descriptor(1, 0, 200));
    co_await group.join();
}

void with_daemon(int) {
    run(hold_one("setsid sh -c 'trap \"\" TERM HUP; sleep 1000 & echo $! >daemon; echo >&9'; "
                 "echo >&9; exec sleep 1000"));
}

asio::awaitable<void> hold_one_with_daemon(int method) {
    auto group =
        co_await cohort::spawn(cohort::function<with_daemon>(), with_descriptor(1, method, 200));
    co_await group.join();
}

asio::awaitable<void> fork_and_hold() {
    auto group = co_await cohort::spawn(
        cohort::command("sh", "-c", "sleep 1000 & echo >&9; exec sleep 1000"),
        with_descriptor(1, 0, 200));
    if (::fork() == 0) {
        ::setsid();  // so that it does not end with the host's process group
        ::close(held);
        char byte;
        (void)!::read(gate, &byte, 1);
        ::_exit(0);
    }
    co_await group.join();
}

void do_nothing(int) {}

asio::awaitable<void> hold_one_served() {
    // Without a cgroup, so that only the guardian can end the worker's child.
    const auto served = [] {
        return with_descriptor(1, static_cast<int>(cohort::start_method::forkserver), 200)
            .cgroup(cohort::cgroup::off);
    };
    (void)co_await cohort::run(cohort::function<do_nothing>(), served());
    say_ready();
    char byte;
    (void)!::read(gate, &byte, 1);
    auto group = co_await cohort::spawn(cohort::function<stubborn>(), served());
    say_ready();
    co_await group.join();
}

asio::awaitable<void> look_for_children() {
    auto done = co_await cohort::run(cohort::command("true"), 1);
    siginfo_t found{};
    const int result = ::waitid(P_ALL, 0, &found, WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL);
    std::puts(result == -1 && errno == ECHILD ? "no child" : "a child");
}

}  // namespace

int program(int argc, char** argv) {
    cohort::worker_main(argc, argv);
    const std::string_view what = argc > 1 ? argv[1] : "";
    if (what == "plain")
        run(hold_one("echo >&9; exec sleep 1000"));
    else if (what == "forked")
        run(fork_and_hold());
    else if (what == "served")
        run(hold_one_served());
    else if (what == "unseen")
        run(look_for_children());
    else if (what == "daemon" && argc == 3)
        run(hold_one_with_daemon(std::atoi(argv[2])));
    else if (argc == 4)
        run(hold(std::atoi(argv[1]), std::atoi(argv[2]), std::atoi(argv[3])));
    return 0;
}

}  // namespace guarded_host
