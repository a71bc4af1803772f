// SPDX-License-Identifier: BSL-1.0
// A program with functions and worker_main, for tests that start it directly with a control file of
// their own.
//   bare_worker key NAME     prints a function's key: the offset, then the module's bytes in hex
#include "protocol/registry/mark.hpp"
#include "protocol/registry/registry.hpp"
#include "worker/signals/signals.hpp"

#include <cohort/function.hpp>
#include <cohort/worker.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>
#include <stop_token>
#include <string>

#include <csignal>
#include <fcntl.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using cohort::this_worker::stop_token;

struct broken_pipe : std::runtime_error {
    using std::runtime_error::runtime_error;
};
struct strange {};

std::string greet(int index, const std::string& name, int times) {
    return name + " " + std::to_string(index) + " " + std::to_string(times);
}
void nothing(int) {}
void raise_error(int index) {
    throw broken_pipe("worker " + std::to_string(index) + " is \xFF upset");
}
void throw_int(int) { throw 42; }
void throw_text(int) { throw "a literal"; }
void throw_string(int) { throw std::string("a string"); }
void throw_strange(int) { throw strange(); }
void leave(int) { std::exit(7); }
void huge_error(int) { throw std::runtime_error("BEGIN" + std::string(3 << 20, 'x') + "END"); }
void drop_control(int) {
    for (int fd = 3; fd < 256; ++fd)
        ::close(fd);
    throw std::runtime_error("nobody hears this");
}
/// A result that cannot be written because of a file size limit.
std::vector<unsigned char> too_large(int) {
    const rlimit limit{8192, 8192};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    return std::vector<unsigned char>(100'000);
}
void too_large_error(int) {
    const rlimit limit{4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    throw std::runtime_error("BEGIN" + std::string(100'000, 'x') + "END");
}

std::string facts(int index) {
    char name[16] = {};
    ::prctl(PR_GET_NAME, name);
    using namespace cohort;
    std::string text = std::to_string(index) + " " + std::to_string(this_worker::index()) + " " +
                       std::to_string(this_worker::size()) + " " +
                       std::to_string(this_worker::parent()) + " " +
                       (this_worker::active() ? "active" : "inactive") + " " + name;
    text += protocol::is_worker_process() ? " marked" : " unmarked";
    text += protocol::worker_main_reached() ? " reached" : " unreached";
    for (const int fd : {60, 61}) {
        const int flags = ::fcntl(fd, F_GETFD);
        if (flags >= 0)
            text += (flags & FD_CLOEXEC) != 0 ? " cloexec" : " inherited";
    }
    return text;
}

/// The host is the one that was named when the worker began.
std::string place(int) {
    ::setenv("COHORT_HOST", "another", 1);
    using namespace cohort;
    return std::to_string(this_worker::local_index()) + " of " +
           std::to_string(this_worker::local_size()) + " on '" + this_worker::host() + "'";
}

void again(int index) {
    char program[] = "bare_worker";
    char mark[] = "--cohort-worker=1:2";
    char* argv[] = {program, mark, nullptr};
    cohort::worker_main(2, argv);
    if (index != cohort::this_worker::index())
        throw std::logic_error("another worker");
}

/// Ends when a stop is requested.
std::string until_stopped(int) {
    const auto token = stop_token();
    const bool before = token.stop_requested();
    std::atomic<bool> asked{false};
    const std::stop_callback tell(token, [&asked] {
        asked = true;
        asked.notify_one();
    });
    ::kill(::getpid(), SIGTERM);
    asked.wait(false);
    return before ? "stopped before" : "stopped";
}
/// Without a token the signal keeps its default action.
void die_of_signal(int) {
    ::kill(::getpid(), SIGTERM);
    for (;;)
        ::pause();
}
void hook_then_signal(int) {
    cohort::worker::on_stop_signal(
        [](cohort::worker::afterwards) { (void)!::write(STDERR_FILENO, "hook ran\n", 9); });
    ::kill(::getpid(), SIGTERM);
    for (;;)
        ::pause();
}
std::string hook_and_token(int) {
    const auto token = stop_token();
    static std::atomic<bool> ran{false};
    cohort::worker::on_stop_signal([](cohort::worker::afterwards) {
        ran = true;
        ran.notify_one();
    });
    ::kill(::getpid(), SIGTERM);
    ran.wait(false);
    return token.stop_requested() ? "both" : "the hook alone";
}
std::string own_handler(int) {
    std::signal(SIGTERM, SIG_IGN);
    (void)stop_token();
    struct sigaction action;
    ::sigaction(SIGTERM, nullptr, &action);
    return action.sa_handler == SIG_IGN ? "left alone" : "taken";
}
/// A forked copy of a worker with a token dies of the signal like any process.
int forked_copy(int) {
    (void)stop_token();
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(60);
        for (;;)
            ::pause();
    }
    ::kill(child, SIGTERM);
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : -1;
}
void end_thread(int) { ::pthread_exit(nullptr); }

/// Registers a function in a branch that need not be taken.
const cohort::detail::function_node* deep_in_a_branch(bool taken) {
    if (!taken)
        return nullptr;
    return cohort::function<[](int index) { return index * 2; }>().plan().function;
}

template <auto Fn, class... Args>
const cohort::detail::function_node* node_of(const Args&... args) {
    return cohort::function<Fn>(args...).plan().function;
}

const cohort::detail::function_node* node_named(const std::string& name) {
    const std::map<std::string, const cohort::detail::function_node*> nodes{
        {"greet", node_of<greet>("", 0)},
        {"nothing", node_of<nothing>()},
        {"raise_error", node_of<raise_error>()},
        {"throw_int", node_of<throw_int>()},
        {"throw_text", node_of<throw_text>()},
        {"throw_string", node_of<throw_string>()},
        {"throw_strange", node_of<throw_strange>()},
        {"leave", node_of<leave>()},
        {"huge_error", node_of<huge_error>()},
        {"drop_control", node_of<drop_control>()},
        {"too_large", node_of<too_large>()},
        {"too_large_error", node_of<too_large_error>()},
        {"facts", node_of<facts>()},
        {"place", node_of<place>()},
        {"again", node_of<again>()},
        {"until_stopped", node_of<until_stopped>()},
        {"die_of_signal", node_of<die_of_signal>()},
        {"hook_then_signal", node_of<hook_then_signal>()},
        {"hook_and_token", node_of<hook_and_token>()},
        {"own_handler", node_of<own_handler>()},
        {"forked_copy", node_of<forked_copy>()},
        {"end_thread", node_of<end_thread>()},
        {"deep_in_a_branch", deep_in_a_branch(name == "deep_in_a_branch")},
    };
    return nodes.at(name);
}

/// The value before main, as a user's static initialiser would see it.
const bool marked_before_main = cohort::protocol::is_worker_process();

}  // namespace

int main(int argc, char** argv) {
    if (std::getenv("BARE_WORKER_SKIPS_WORKER_MAIN") != nullptr) {
        std::printf("%s %s\n", marked_before_main ? "marked" : "unmarked",
                    cohort::protocol::worker_main_reached() ? "reached" : "unreached");
        return 0;
    }
    cohort::worker_main(argc, argv);
    if (argc != 3 || std::strcmp(argv[1], "key") != 0) {
        std::printf("main goes on: %d %d\n", cohort::this_worker::active(), marked_before_main);
        return 0;
    }
    const auto key = cohort::protocol::key_of(*node_named(argv[2]));
    if (cohort::protocol::find(key) != node_named(argv[2]))
        return 1;
    std::printf("%llu ", static_cast<unsigned long long>(key.offset));
    for (int i = 0; i < key.module_length; ++i)
        std::printf("%02x", key.module[static_cast<std::size_t>(i)]);
    std::printf("\n");
    return 0;
}
