// SPDX-License-Identifier: BSL-1.0
// A host that becomes another user while the library's threads run. METHOD is a start_method, or 3:
// commands.
//   setuid_host change METHOD  starts three groups of two workers, becomes nobody, starts another,
//                              and prints the ends of two of the first groups and of later ones.
//                              Writes to 9 when that is done; at the end of 8 it returns from main,
//                              with a live group of either user. All workers hold 9, and each that
//                              sleeps has a child that does too.
//   setuid_host storm METHOD   becomes nobody and itself again, 100 times, while groups start and
//                              end
#include "confinement.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <grp.h>
#include <unistd.h>

namespace setuid_host {
namespace {

using namespace std::chrono_literals;

constexpr int held = 9;
constexpr int gate = 8;
constexpr int commands = 3;

int method = 0;

void run(asio::awaitable<void> body) {
    asio::io_context context;
    asio::co_spawn(context, std::move(body), [](std::exception_ptr error) {
        if (error)
            std::rethrow_exception(error);
    });
    context.run();
}

void sleeps(int) {
    (void)!::fork();
    for (;;)
        ::pause();
}
void waits(int) {
    char byte;
    (void)!::read(gate, &byte, 1);
}
int user(int) { return static_cast<int>(::getuid()); }

cohort::options two() {
    auto how = cohort::options(2).grace_period(200ms).kill_timeout(200ms).fd(held, held);
    return method == commands ? how : how.start_method(static_cast<cohort::start_method>(method));
}

asio::awaitable<cohort::group> start_sleeping() {
    if (method == commands)
        co_return co_await cohort::spawn(
            cohort::command("sh", "-c", "sleep 1000 & exec sleep 1000"), two());
    co_return co_await cohort::spawn(cohort::function<sleeps>(), two());
}

/// Starts workers that end when the other end of `pipe` is closed.
asio::awaitable<cohort::group> start_waiting(int pipe) {
    auto how = two().fd(pipe, gate);
    if (method == commands)
        co_return co_await cohort::spawn(cohort::command("sh", "-c", "read line <&8; :"), how);
    co_return co_await cohort::spawn(cohort::function<waits>(), how);
}

/// Whether new workers run as the user `wanted`.
asio::awaitable<bool> new_ones_are_of(unsigned wanted) {
    if (method == commands) {
        const auto test = fmt::format("test $(id -u) = {}", wanted);
        (void)co_await cohort::run(cohort::command("sh", "-c", test), two());
        co_return true;
    }
    const auto done = co_await cohort::run(cohort::function<user>(), two());
    bool all = true;
    for (const auto& worker : done.outcomes)
        all = all && static_cast<unsigned>(worker.result<int>()) == wanted;
    co_return all;
}

asio::awaitable<void> tell_stop(const char* which, cohort::group group) {
    const auto stopped = co_await group.stop();
    fmt::print("{}: {} {}\n", which, to_string(stopped.outcomes.at(0).cause),
               to_string(stopped.outcomes.at(1).cause));
}

/// Destroyed after main.
cohort::group left;
cohort::group left_by_nobody;

asio::awaitable<void> change() {
    std::array<int, 2> ends{};
    confinement::require(::pipe2(ends.data(), O_CLOEXEC) == 0, "pipe2");
    auto waiting = co_await start_waiting(ends[0]);
    auto sleeping = co_await start_sleeping();
    left = co_await start_sleeping();
    confinement::become(confinement::nobody);
    left_by_nobody = co_await start_sleeping();
    fmt::print("left: {} {} {}\n", ::getpid(), left.pids().at(0), left_by_nobody.pids().at(0));

    ::close(ends[1]);
    fmt::print("ended: {}\n", co_await waiting.join());
    co_await tell_stop("stopped", std::move(sleeping));
    fmt::print("new ones are nobody's: {}\n", co_await new_ones_are_of(confinement::nobody));
    co_await tell_stop("new ones stopped", co_await start_sleeping());
}

asio::awaitable<void> live_on(const std::atomic<bool>& done) {
    while (!done) {
        if (method == commands) {
            (void)co_await cohort::run(cohort::command("true"), two());
            continue;
        }
        const auto ended = co_await cohort::run(cohort::function<user>(), two());
        for (const auto& worker : ended.outcomes)
            (void)worker.result<int>();
    }
}

void storm() {
    std::atomic<bool> done = false;
    confinement::require(::setgroups(0, nullptr) == 0, "setgroups");
    std::thread changes([&done] {
        for (int i = 0; i < 100; ++i) {
            confinement::require(::setresuid(confinement::nobody, confinement::nobody, 0) == 0,
                                 "setresuid");
            std::this_thread::yield();
            confinement::require(::setresuid(0, 0, 0) == 0, "setresuid");
        }
        done = true;
    });
    run(live_on(done));
    changes.join();
    fmt::print("well\n");
}

}  // namespace

int program(int argc, char** argv) {
    cohort::worker_main(argc, argv);
    if (argc != 3)
        return 2;
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    method = std::atoi(argv[2]);
    if (std::string_view(argv[1]) == "storm") {
        storm();
        return 0;
    }
    run(change());
    (void)!::write(held, "\n", 1);
    char byte;
    (void)!::read(gate, &byte, 1);
    return 0;
}

}  // namespace setuid_host
