// SPDX-License-Identifier: BSL-1.0
// A host that forks itself while it has groups. Exits with 0 if all is as it must be, else prints
// what is not.
//   forking_host inert | operations | spawn | first | storm
#include <cohort/cohort.hpp>

#include <asio.hpp>

#include "../support/sanitizers.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <csignal>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace forking_host {
namespace {

void check(bool is_so, const char* fact) {
    if (is_so)
        return;
    std::fprintf(stderr, "forking_host: not so: %s\n", fact);
    ::_exit(1);
}

/// The exit code of a forked copy; -1: a signal ended it.
int wait_for(pid_t child) {
    int status = 0;
    check(::waitpid(child, &status, 0) == child, "the copy is the parent's child");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// A context, a live group whose workers end when their input does, and a pending join.
class host {
public:
    host() {
        std::array<int, 2> pipe{};
        check(::pipe2(pipe.data(), O_CLOEXEC) == 0, "pipe");
        cohort::async_spawn(*io_, cohort::command("cat"),
                            cohort::options(3).fd(pipe[0], STDIN_FILENO),
                            [this](std::exception_ptr e, cohort::group g) {
                                check(!e, "the group starts");
                                group_ = std::move(g);
                            });
        io_->run();
        io_->restart();
        ::close(pipe[0]);
        input_ = pipe[1];
        group_.async_join([this](std::exception_ptr e, bool all) {
            check(!e, "the parent's join completes without an error");
            joined_ = all;
        });
    }

    asio::io_context& io() { return *io_; }
    cohort::group& group() { return group_; }
    void destroy_context() { io_.reset(); }
    void forget_group() { group_ = cohort::group(); }
    void close_input() { ::close(input_); }

    /// Checks that the workers have not been touched: they live, and end when they are told to.
    void go_on() {
        check(group_.alive() == 3, "the parent's workers live");
        close_input();
        io_->run();
        check(joined_, "the parent's join says that all ended well");
    }

private:
    std::unique_ptr<asio::io_context> io_ = std::make_unique<asio::io_context>();
    cohort::group group_;
    int input_ = -1;
    bool joined_ = false;
};

/// The copy makes every call that could touch the workers, and destroys all it has.
int inert() {
    host h;
    for (const bool context_first : {true, false}) {
        const pid_t child = ::fork();
        if (child == 0) {
            h.group().request_stop();
            h.group().signal(SIGKILL);
            if (context_first)
                h.destroy_context();
            h.forget_group();
            h.destroy_context();
            std::exit(0);
        }
        check(wait_for(child) == 0, "the copy exits cleanly");
    }
    h.go_on();
    return 0;
}

int operations() {
    host h;
    const pid_t child = ::fork();
    if (child == 0) {
        asio::io_context io;
        int errors = 0;
        const auto count = [&errors](std::exception_ptr e, auto&&...) {
            try {
                std::rethrow_exception(e);
            } catch (const std::system_error& error) {
                errors += error.code() == std::errc::no_child_process ? 1 : 0;
            }
        };
        h.group().async_join(asio::bind_executor(io, count));
        h.group().async_next(asio::bind_executor(io, count));
        h.group().async_stop(asio::bind_executor(io, count));
        io.run();
        check(errors == 3, "operations of the copy say that the group is not its own");
        check(h.group().size() == 3, "what is known of the group can be read");
        std::exit(0);
    }
    check(wait_for(child) == 0, "the copy exits cleanly");
    h.go_on();
    return 0;
}

void run_one(asio::io_context& io, cohort::options how) {
    std::optional<bool> all;
    asio::co_spawn(
        io,
        [](cohort::options o) -> asio::awaitable<bool> {
            co_return (co_await cohort::run(cohort::command("true"), std::move(o))).success();
        }(std::move(how)),
        [&all](std::exception_ptr e, bool ok) { all = !e && ok; });
    io.run();
    io.restart();
    check(all == true, "a whole group runs");
}

/// The copy starts groups of its own, and its exit() ends the live one among them.
int spawn() {
    host h;
    const pid_t child = ::fork();
    if (child == 0) {
        h.close_input();
        {
            asio::io_context io;
            run_one(io, 2);
        }
        static auto* const live = new host;  // never destroyed: exit() must end its group
        check(live->group().alive() == 3, "the copy's own workers live");
        const pid_t grandchild = ::fork();
        if (grandchild == 0) {
            live->close_input();
            {
                asio::io_context io;
                run_one(io, 1);
            }
            std::exit(0);
        }
        check(wait_for(grandchild) == 0, "a copy of the copy works too");
        std::exit(0);
    }
    check(wait_for(child) == 0, "the copy exits cleanly");
    h.go_on();
    return 0;
}

/// Forks at many moments while another thread uses the library for the first time.
int first() {
    for (int microseconds = 0; microseconds < 3000; microseconds += 100) {
        const pid_t fresh = ::fork();
        if (fresh == 0) {
            std::thread other([] {
                asio::io_context io;
                run_one(io, 1);
            });
            const auto moment =
                std::chrono::steady_clock::now() + std::chrono::microseconds(microseconds);
            while (std::chrono::steady_clock::now() < moment) {
            }
            const pid_t child = ::fork();
            if (child == 0) {
                ::alarm(60);
                asio::io_context io;
                run_one(io, 1);
                ::_exit(0);
            }
            check(wait_for(child) == 0,
                  "a copy of a host that was about to start a group starts one");
            other.join();
            std::exit(0);
        }
        check(wait_for(fresh) == 0, "the host goes on");
    }
    return 0;
}

/// Forks 200 times while another thread starts groups and sees them end.
int storm() {
    std::atomic<bool> done{false};
    host h;
    std::thread forker([&done] {
        for (int i = 0; i < cohort::test::how_many(200, 50); ++i) {
            const pid_t child = ::fork();
            if (child == 0) {
                if (i % 2 == 0)
                    std::exit(0);
                ::_exit(0);
            }
            check(wait_for(child) == 0, "each copy exits cleanly");
        }
        done = true;
    });
    asio::io_context io;
    int rounds = 0;
    do {
        run_one(io, 4);
        ++rounds;
    } while (!done);
    forker.join();
    check(rounds > 1, "groups ran meanwhile");
    h.go_on();
    return 0;
}

}  // namespace

int program(int argc, char** argv) {
    const std::string_view how = argc > 1 ? argv[1] : "";
    if (how == "inert")
        return inert();
    if (how == "operations")
        return operations();
    if (how == "spawn")
        return spawn();
    if (how == "first")
        return first();
    if (how == "storm")
        return storm();
    return 2;
}

}  // namespace forking_host
