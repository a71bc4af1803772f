// SPDX-License-Identifier: BSL-1.0
// A host that is killed: two workers, each with two of its own. All ignore SIGINT, SIGTERM, SIGHUP
// and SIGPIPE. Each of the six writes a byte to descriptor 9 when it is ready, then waits for ever.
#include <cohort/cohort.hpp>

#include <asio.hpp>

#include <csignal>
#include <exception>

#include <unistd.h>

namespace orphan_host {
namespace {

constexpr int ready_fd = 9;

[[noreturn]] void be_stubborn() {
    for (int signo : {SIGINT, SIGTERM, SIGHUP, SIGPIPE})
        std::signal(signo, SIG_IGN);
    (void)!::write(ready_fd, "\n", 1);
    for (;;)
        ::pause();
}

void leaf(int) { be_stubborn(); }

template <auto Fn>
asio::awaitable<void> hold_two(bool stubborn) {
    auto group =
        co_await cohort::spawn(cohort::function<Fn>(), cohort::options(2).fd(ready_fd, ready_fd));
    if (stubborn)
        be_stubborn();  // the group lives on; its engine has threads of its own
    co_await group.join();
}

template <auto Fn>
void hold(bool stubborn) {
    asio::io_context context;
    asio::co_spawn(context, hold_two<Fn>(stubborn), [](std::exception_ptr error) {
        if (error)
            std::terminate();
    });
    context.run();
}

void middle(int) { hold<leaf>(true); }

}  // namespace

int program(int argc, char** argv) {
    cohort::worker_main(argc, argv);
    hold<middle>(false);
    return 0;
}

}  // namespace orphan_host
