// SPDX-License-Identifier: BSL-1.0
// A host that lacks something, or loses it while it has groups.
//   confined_host LOSS...       loses each, then prints a line for commands and for each start
//                               method: "well", or the error
//   confined_host LOSS... late LOSS...  starts groups of all kinds before it loses the latter, and
//                                       ends them afterwards
// A LOSS is: proc, empty_proc (/proc is empty), tmp (full), writing (all is read-only),
// lockable_memory, user (becomes nobody), main_thread (it ends), init (becomes PID 1 of a pid
// namespace; prints also how many children are left but the server). Prints "skip: why" if it can't
// be lost here.
//   confined_host files         for each kind: raises the limit on open files from the present
//                               number until all works, then prints "well"
//   confined_host processes METHOD LIMIT N  as a user with at most LIMIT processes, starts N
//                                           workers that sleep: prints the error, and how many
//                                           children are left but a server
#include "confinement.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace confined_host {
namespace {

using namespace std::chrono_literals;

struct kind {
    const char* name;
    bool command = false;
    cohort::start_method method = cohort::start_method::spawn;
};
constexpr std::array<kind, 4> kinds{{{"command", true},
                                     {"spawn", false, cohort::start_method::spawn},
                                     {"fork", false, cohort::start_method::fork},
                                     {"forkserver", false, cohort::start_method::forkserver}}};

int square(int index) { return index * index; }
void sleeps(int) {
    for (;;)
        ::pause();
}
constexpr int gate = 8;
void waits(int) {
    char byte;
    (void)!::read(gate, &byte, 1);
}

void require(bool is_so, const char* fact) {
    if (!is_so)
        throw std::logic_error(fmt::format("not so: {}", fact));
}

void run(asio::io_context& context, asio::awaitable<void> body) {
    std::exception_ptr error;
    asio::co_spawn(context, std::move(body), [&error](std::exception_ptr e) { error = e; });
    context.run();
    context.restart();
    if (error)
        std::rethrow_exception(error);
}

cohort::options how(const kind& k, int count) {
    return cohort::options(count).start_method(k.method).kill_timeout(60s);
}

/// Runs a group to its end and checks a result.
asio::awaitable<void> come_to_the_end(kind k) {
    if (k.command) {
        (void)co_await cohort::run(cohort::command("sh", "-c", "exit 0"), how(k, 3));
        co_return;
    }
    const auto done = co_await cohort::run(cohort::function<square>(), how(k, 3));
    require(done.outcomes.at(2).result<int>() == 4, "a result is there");
}

asio::awaitable<cohort::group> start_sleeping(kind k) {
    if (k.command)
        co_return co_await cohort::spawn(cohort::command("sleep", 1000), how(k, 2));
    co_return co_await cohort::spawn(cohort::function<sleeps>(), how(k, 2));
}

/// Stops a group and checks that its workers ended by that.
asio::awaitable<void> be_stopped(cohort::group group) {
    const auto stopped = co_await group.stop();
    for (const auto& o : stopped.outcomes)
        require(o.cause == cohort::cause::stopped, "a group is stopped");
}

asio::awaitable<void> both(kind k) {
    co_await come_to_the_end(k);
    co_await be_stopped(co_await start_sleeping(k));
}

std::string told_of(asio::io_context& context, const kind& k) {
    try {
        run(context, both(k));
        return "well";
    } catch (const cohort::spawn_error& e) {
        return fmt::format("{}: {}", e.stage(), e.what());
    } catch (const std::exception& e) {
        return e.what();
    }
}

// --- what is lost while groups live

/// Groups of all kinds: some end when the gate opens, others sleep.
class early_groups {
public:
    explicit early_groups(asio::io_context& context) : context_(context) {
        require(::pipe2(ends_.data(), O_CLOEXEC) == 0, "a pipe");
        for (const auto& k : kinds)
            run(context_, start(k));
    }
    /// Opens the gate, and stops those that sleep.
    void end() {
        ::close(ends_[1]);
        for (auto& group : ending_)
            run(context_, [](cohort::group& g) -> asio::awaitable<void> {
                require(co_await g.join(), "an early group comes to its end");
            }(group));
        for (auto& group : sleeping_)
            run(context_, be_stopped(std::move(group)));
    }

private:
    asio::awaitable<void> start(kind k) {
        const auto with_gate = how(k, 2).fd(ends_[0], gate);
        sleeping_.push_back(co_await start_sleeping(k));
        if (k.command)
            ending_.push_back(
                co_await cohort::spawn(cohort::command("sh", "-c", "read line <&8; :"), with_gate));
        else
            ending_.push_back(co_await cohort::spawn(cohort::function<waits>(), with_gate));
    }

    asio::io_context& context_;
    std::array<int, 2> ends_{};
    std::vector<cohort::group> ending_;
    std::vector<cohort::group> sleeping_;
};

// --- what is left

bool can_have_guardian() {
    return cohort::capabilities().parent_death.tier.find("guardian") != std::string::npos;
}

/// Whether a guardian of this process lives: it has a pidfd of this process at descriptor 3.
bool has_guardian() {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        std::string name, line;
        std::getline(std::ifstream(entry.path() / "cmdline"), name, '\0');
        std::ifstream info(entry.path() / "fdinfo/3");
        while (name == "cohort-guardian" && std::getline(info, line))
            if (line == fmt::format("Pid:\t{}", ::getpid()))
                return true;
    }
    return false;
}

/// Waits, because the library reaps its own helpers a little later.
bool has_no_zombie_soon() {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    for (;;) {
        siginfo_t found{};
        if (::waitid(P_ALL, 0, &found, WEXITED | WNOHANG | WNOWAIT | __WALL) != 0 ||
            found.si_pid == 0)
            return true;
        if (std::chrono::steady_clock::now() > until)
            return false;
        std::this_thread::yield();
    }
}

/// The number of this process's children, zombies included.
int children() {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        std::ifstream in(entry.path() / "stat");
        std::string number, name, state;
        pid_t parent = 0;
        count += in >> number >> name >> state >> parent && parent == ::getpid();
    }
    return count;
}

/// @return why the namespace can't be made; empty: it is made, or not needed
std::string own_mounts_for(const std::vector<std::string_view>& losses) {
    try {
        if (std::ranges::any_of(losses, confinement::own_mounts::are_changed_by))
            confinement::own_mounts::make();
        return {};
    } catch (const std::system_error& e) {
        return e.what();
    }
}

/// What is made by paths of open files.
void share() {
    const cohort::event event;
    const cohort::barrier barrier(2);
    require(cohort::shared_array<int>(10).read_only().size() == 10, "an array is made read-only");
}

int live_without(const std::vector<std::string_view>& losses) {
    if (const auto why_not = own_mounts_for(losses); !why_not.empty()) {
        fmt::print("skip: {}\n", why_not);
        return 0;
    }
    asio::io_context context;
    std::optional<early_groups> early;
    for (const auto loss : losses)
        if (loss == "late") {
            early.emplace(context);
        } else if (const auto why_not = confinement::lose(loss); !why_not.empty()) {
            fmt::print("skip: {}\n", why_not);
            return 0;
        }
    if (std::ranges::find(losses, "main_thread") != losses.end())
        share();
    fmt::print("guardian: {}\n", can_have_guardian() ? "yes" : "no");
    for (const auto& k : kinds)
        fmt::print("{}: {}\n", k.name, told_of(context, k));
    if (early) {
        early->end();
        fmt::print("early: well\n");
    }
    if (::getpid() == 1) {
        require(has_no_zombie_soon(), "nobody is left unreaped");
        require(!has_guardian(), "PID 1 has no guardian");
        fmt::print("{} children\n", children() - 1);
    }
    return 0;
}

// --- limits

rlim_t next_descriptor() {
    const int fd = ::dup(STDERR_FILENO);
    ::close(fd);
    return static_cast<rlim_t>(fd);
}

/// One attempt. It may fail only with EMFILE. @return whether it succeeded
bool has_enough_files(asio::io_context& context, const kind& k) {
    try {
        run(context, both(k));
        return true;
    } catch (const std::system_error& e) {
        require(e.code() == std::errc::too_many_files_open, e.what());
        return false;
    }
}

int with_few_files() {
    asio::io_context context;
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    const rlim_t base = next_descriptor();
    for (const auto& k : kinds) {
        rlim_t room = 0;
        for (bool enough = false; !enough; ++room) {
            require(room < 100, "it works some day");
            const rlimit few{base + room, before.rlim_max};
            ::setrlimit(RLIMIT_NOFILE, &few);
            enough = has_enough_files(context, k);
            require(enough || has_no_zombie_soon(), "nobody is left unreaped");
        }
        fmt::print("{}: well\n", k.name);
    }
    ::setrlimit(RLIMIT_NOFILE, &before);
    run(context, both(kinds[0]));
    require(has_guardian() == can_have_guardian(),
            "a guardian that could not be started is tried again");
    return 0;
}

int with_few_processes(int method, rlim_t limit, int workers) {
    if (const auto why_not = confinement::lose("all_other_processes"); !why_not.empty()) {
        fmt::print("skip: {}\n", why_not);
        return 0;
    }
    asio::io_context context;
    const kind k{"", false, static_cast<cohort::start_method>(method)};
    rlimit before{};
    ::getrlimit(RLIMIT_NPROC, &before);
    fmt::print("before: {}\n", told_of(context, kinds[0]));  // makes the library start its threads
    const rlimit few{limit, before.rlim_max};
    ::setrlimit(RLIMIT_NPROC, &few);
    try {
        run(context, [](kind one, int count) -> asio::awaitable<void> {
            (void)co_await cohort::run(cohort::function<sleeps>(), how(one, count));
        }(k, workers));
    } catch (const cohort::spawn_error& e) {
        fmt::print("{}: {}\n", e.stage(), e.what());
    }
    ::setrlimit(RLIMIT_NPROC, &before);
    const int servers = k.method == cohort::start_method::forkserver;
    fmt::print("{} children\n", children() - servers);
    fmt::print("after: {}\n", told_of(context, k));
    return 0;
}

}  // namespace

int program(int argc, char** argv) {
    cohort::worker_main(argc, argv);
    const std::vector<std::string_view> words(argv + 1, argv + argc);
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    if (!words.empty() && words[0] == "files")
        return with_few_files();
    if (words.size() == 4 && words[0] == "processes")
        return with_few_processes(std::atoi(argv[2]), static_cast<rlim_t>(std::atoi(argv[3])),
                                  std::atoi(argv[4]));
    if (std::ranges::find(words, "main_thread") != words.end())
        confinement::main_thread::leave_to([words] { std::exit(live_without(words)); });
    return live_without(words);
}

}  // namespace confined_host
