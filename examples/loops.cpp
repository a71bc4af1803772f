// SPDX-License-Identifier: BSL-1.0
// Loops that are not Asio's: a GLib loop, a libuv loop and a bare epoll loop. Each watches the
// descriptor of a manual_executor, and runs a coroutine that awaits a group.

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#ifdef WITH_GLIB
#include <glib-unix.h>
#include <glib.h>
#endif
#ifdef WITH_LIBUV
#include <uv.h>
#endif

#include <functional>

#include <sys/epoll.h>
#include <unistd.h>

asio::awaitable<void> work(const char* where) {
    const auto report = co_await cohort::run(cohort::command("true"), 3);
    fmt::print("{}: {} workers, all well: {}\n", where, report.outcomes.size(), report.success());
}

// A handler that throws would throw through the loop, out of run_ready(). Those of C libraries
// can't bear that, so the exception is thrown when the loop is over.
class task {
public:
    task(cohort::manual_executor& loop, const char* where, std::function<void()> quit) {
        asio::co_spawn(loop, work(where), [this, quit](std::exception_ptr error) {
            error_ = error;
            quit();
        });
    }
    void finish() const {
        if (error_)
            std::rethrow_exception(error_);
    }

private:
    std::exception_ptr error_;
};

void glib() {
#ifdef WITH_GLIB
    cohort::manual_executor loop;
    GMainLoop* main = g_main_loop_new(nullptr, FALSE);
    const auto run = [](int, GIOCondition, void* ready) -> gboolean {
        static_cast<cohort::manual_executor*>(ready)->run_ready();
        return G_SOURCE_CONTINUE;
    };
    const unsigned watch = g_unix_fd_add(loop.fd(), G_IO_IN, run, &loop);
    const task todo(loop, "GLib", [main] { g_main_loop_quit(main); });
    g_main_loop_run(main);
    g_source_remove(watch);
    g_main_loop_unref(main);
    todo.finish();
#else
    fmt::print("GLib: left out of this build\n");
#endif
}

void libuv() {
#ifdef WITH_LIBUV
    cohort::manual_executor loop;
    uv_loop_t uv;
    uv_loop_init(&uv);
    uv_poll_t watch;
    uv_poll_init(&uv, &watch, loop.fd());
    watch.data = &loop;
    uv_poll_start(&watch, UV_READABLE, [](uv_poll_t* from, int, int) {
        static_cast<cohort::manual_executor*>(from->data)->run_ready();
    });
    const task todo(loop, "libuv",
                    [&] { uv_close(reinterpret_cast<uv_handle_t*>(&watch), nullptr); });
    uv_run(&uv, UV_RUN_DEFAULT);  // until no handle is left
    uv_loop_close(&uv);
    todo.finish();
#else
    fmt::print("libuv: left out of this build\n");
#endif
}

void epoll() {
    cohort::manual_executor loop;
    const int waits = epoll_create1(EPOLL_CLOEXEC);
    epoll_event ready{EPOLLIN, {}};
    epoll_ctl(waits, EPOLL_CTL_ADD, loop.fd(), &ready);
    bool done = false;
    const task todo(loop, "epoll", [&] { done = true; });
    while (!done)
        if (epoll_wait(waits, &ready, 1, -1) == 1)
            loop.run_ready();
    close(waits);
    todo.finish();
}

int main() {
    glib();
    libuv();
    epoll();
}

// Prints (`...` stands for anything):
//   GLib: 3 workers, all well: true
//   libuv: 3 workers, all well: true
//   epoll: 3 workers, all well: true
