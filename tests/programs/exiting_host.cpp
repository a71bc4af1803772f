// SPDX-License-Identifier: BSL-1.0
// A host that ends with live groups. All its workers hold descriptor 9, so that its reader sees end
// of file when all are gone.
//   exiting_host HOW [GRACE [METHOD [USER]]]    prints a line for each handler that is called
// GRACE is in milliseconds. Its workers are commands, or functions that start by METHOD if that is
// not empty. They run as USER.
#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <asio/bind_executor.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <csignal>
#include <sys/resource.h>
#include <unistd.h>

namespace exiting_host {
namespace {

using namespace std::chrono_literals;

constexpr int held = 9;
constexpr int hears = 7;

std::chrono::milliseconds grace = 30s;
std::chrono::milliseconds kill_timeout = 10s;
bool daemonic = false;
std::string_view method;
std::string user;

// Statics that are constructed before the first spawn are destroyed after the library's hook runs.
asio::io_context& early_context() {
    static asio::io_context context;
    return context;
}
cohort::group& early_group() {
    static cohort::group group;
    return group;
}

void print(const char* line) {
    std::puts(line);
    std::fflush(stdout);
}

/// A worker that says that it runs, then sleeps.
void sleep_in_worker(int, bool ignores_stop) {
    if (ignores_stop)
        std::signal(SIGTERM, SIG_IGN);
    (void)!::write(hears, "\n", 1);
    ::close(hears);
    for (;;)
        ::pause();
}

cohort::start_method method_of_functions() {
    if (method == "fork")
        return cohort::start_method::fork;
    return method == "forkserver" ? cohort::start_method::forkserver : cohort::start_method::spawn;
}

/// Starts the workers, and returns when `ready` of them say that they run.
template <class Work>
cohort::group start(asio::io_context& io, const Work& work, cohort::options options, int ready) {
    std::array<int, 2> pipe{};
    if (::pipe(pipe.data()) != 0)
        std::abort();
    cohort::group group;
    options.fd(pipe[1], hears).fd(held, held).grace_period(grace).kill_timeout(kill_timeout);
    cohort::async_spawn(io, work, options, [&group](std::exception_ptr e, cohort::group g) {
        if (e)
            std::rethrow_exception(e);
        group = std::move(g);
    });
    io.run();
    io.restart();
    options = cohort::options();  // the options hold the pipe, too
    ::close(pipe[1]);
    char byte;
    for (int i = 0; i < ready; ++i)
        if (::read(pipe[0], &byte, 1) != 1)
            std::abort();
    ::close(pipe[0]);
    return group;
}

/// Starts workers that sleep, and returns when each of them says that it runs.
cohort::group start(asio::io_context& io, int count, bool ignores_stop = false) {
    auto options = cohort::options(count).daemon(daemonic);
    if (!user.empty())
        options.user(user);
    if (!method.empty())
        return start(io, cohort::function<sleep_in_worker>(ignores_stop),
                     options.start_method(method_of_functions()), count);
    const std::string first = ignores_stop ? "trap '' TERM" : ":";
    return start(io, cohort::command("sh", "-c", first + "; echo >&7; exec 7>&-; exec sleep 1000"),
                 options, count);
}

void tell_join(cohort::group& group) {
    group.async_join([](std::exception_ptr, bool) { print("join was told"); });
}

/// Tells the test that all is set up, and lives until it is killed.
[[noreturn]] void wait_to_be_killed() {
    (void)!::write(held, "\n", 1);
    for (;;)
        ::pause();
}

/// An executor that does not queue, although it must: it calls handlers at once, or never returns.
class bad_executor {
public:
    enum class habit { calls, blocks };
    bad_executor(asio::io_context& io, habit h) noexcept : io_(&io), habit_(h) {}

    asio::execution_context& query(asio::execution::context_t) const noexcept { return *io_; }
    bad_executor require(asio::execution::blocking_t::never_t) const noexcept { return *this; }
    template <class F>
    void execute(F f) const {
        if (habit_ == habit::calls)
            return std::move(f)();
        (void)!::write(held, "\n", 1);
        for (;;)
            ::pause();
    }
    friend bool operator==(const bad_executor&, const bad_executor&) noexcept = default;

private:
    asio::io_context* io_;
    habit habit_;
};

int complete_by(bad_executor::habit h) {
    ::dup2(STDOUT_FILENO, STDERR_FILENO);
    kill_timeout = 0s;
    static cohort::group group;
    auto& io = *new asio::io_context;  // its destruction would wait for the post
    group = start(io, 2, "trap '' TERM");
    std::array<int, 2> pipe{};
    if (::pipe(pipe.data()) != 0 || ::dup2(pipe[1], held) != held)
        std::abort();
    group.async_join(0s, asio::bind_executor(bad_executor(io, h), [](std::exception_ptr, bool) {
                         print("join was told");
                     }));
    char byte;
    (void)!::read(pipe[0], &byte, 1);
    return 0;
}

std::optional<asio::awaitable<cohort::group>> prepared;

void spawn_while_exiting() {
    const auto tell = [](std::exception_ptr e, const cohort::group&) {
        try {
            if (e)
                std::rethrow_exception(e);
            print("started");
        } catch (const cohort::spawn_error& error) {
            print(error.code() == std::error_code(ESHUTDOWN, std::system_category())
                      ? "ESHUTDOWN"
                      : error.what());
        }
    };
    asio::io_context io;
    cohort::async_spawn(io, cohort::command("true"), 1, tell);
    asio::co_spawn(io, std::move(*prepared), tell);
    io.run();
}

int live_and_return(std::string_view how) {
    if (how == "spawn") {
        std::atexit(spawn_while_exiting);  // registered before the library's hook: runs after it
        prepared = cohort::spawn(cohort::command("sleep", 1000), cohort::options().fd(held, held));
    }
    daemonic = how == "daemon";
    early_group() = start(early_context(), 2, how == "stubborn" || daemonic);
    tell_join(early_group());
    static asio::io_context late_context;  // destroyed before the hook runs
    static cohort::group late_group;
    late_group = start(late_context, 2);
    tell_join(late_group);
    if (how == "handler") {
        asio::post(early_context(), [] { std::exit(3); });
        early_context().run();
    }
    if (how == "thread") {
        std::thread([] { std::exit(4); }).detach();
        for (;;)
            ::pause();  // no context may run while statics are destroyed
    }
    if (how == "starting") {
        cohort::async_spawn(late_context, cohort::command("sleep", 1000),
                            cohort::options(50).fd(held, held),
                            [](std::exception_ptr, cohort::group) { print("spawn was told"); });
        late_context.poll();
    }
    return 0;
}

/// Worker 1 is in the pause before its next attempt, workers 0 and 2 live, and 3 has not started.
cohort::group start_batch(asio::io_context& io) {
    auto group = start(
        io,
        cohort::command("sh", "-c",
                        "[ $COHORT_INDEX != 1 ] || exit 1; echo >&7; exec 7>&-; exec sleep 1000"),
        cohort::options(4).at_once(2).restart(cohort::restarts(9).backoff(1h, 1h)), 2);
    group.async_next([](std::exception_ptr, const cohort::received<cohort::outcome>& end) {
        if (!end || end->index != 1 || !end->restarted)
            std::abort();
    });
    io.run();
    io.restart();
    return group;
}

int return_in_batch() {
    early_group() = start_batch(early_context());
    return 0;
}

int die_in_batch() {
    asio::io_context io;
    const auto group = start_batch(io);
    wait_to_be_killed();
}

int die(std::string_view how) {
    asio::io_context io;
    const auto group = start(io, 3);
    if (how == "_exit")
        ::_exit(5);
    if (how == "quick_exit")
        std::quick_exit(6);
    if (how == "abort")
        std::abort();
    if (how == "execve")
        ::execlp("sh", "sh", "-c", "exec 9>&-; read line <&8; exit 7", nullptr);
    wait_to_be_killed();
}

/// The threads that started the groups, and their contexts, have ended long before.
int outlived_threads() {
    cohort::group of_thread, of_pool;
    std::thread([&] {
        asio::io_context io;
        of_thread = start(io, 2);
    }).join();
    {
        asio::thread_pool pool(1);
        asio::post(pool, [&] {
            asio::io_context io;
            of_pool = start(io, 2);
        });
        pool.join();
    }
    if (of_thread.alive() != 2 || of_pool.alive() != 2)
        return 1;
    wait_to_be_killed();
}

}  // namespace

int program(int argc, char** argv) {
    early_context();
    early_group();
    cohort::worker_main(argc, argv);
    const std::string_view how = argc > 1 ? argv[1] : "";
    if (argc > 2)
        grace = std::chrono::milliseconds(std::atoi(argv[2]));
    if (argc > 3)
        method = argv[3];
    if (argc > 4)
        user = argv[4];
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    if (how == "outlived_threads")
        return outlived_threads();
    if (how == "return_in_batch")
        return return_in_batch();
    if (how == "kill_in_batch")
        return die_in_batch();
    if (how == "calling_executor")
        return complete_by(bad_executor::habit::calls);
    if (how == "blocking_executor")
        return complete_by(bad_executor::habit::blocks);
    for (const std::string_view hard : {"_exit", "quick_exit", "abort", "execve", "kill"})
        if (how == hard)
            return die(how);
    return live_and_return(how);
}

}  // namespace exiting_host
