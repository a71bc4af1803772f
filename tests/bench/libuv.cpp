// SPDX-License-Identifier: BSL-1.0
// libuv with stdin from /dev/null, stdout and stderr inherited (as cohort does by default). It
// detects ends by SIGCHLD. Handles must be closed before the next wave.
#include "peer.hpp"

#include <stdexcept>

#include <uv.h>

namespace bench {
namespace {

using std::chrono::steady_clock;

void check(int result, const char* what) {
    if (result < 0)
        throw std::runtime_error(std::string(what) + ": " + uv_strerror(result));
}

class waves {
public:
    waves(uv_loop_t& loop, const job& todo)
        : loop_(loop), todo_(todo), children_(static_cast<std::size_t>(todo.at_once)) {
        if (todo_.beside == nullptr)
            return;
        check(uv_poll_init(&loop_, &ticks_, todo_.beside->fd()), "uv_poll_init");
        ticks_.data = todo_.beside;
        check(uv_poll_start(&ticks_, UV_READABLE,
                            [](uv_poll_t* handle, int, int) {
                                static_cast<ticker*>(handle->data)->served();
                            }),
              "uv_poll_start");
        todo_.beside->arm();
    }

    void next() {
        if (static_cast<int>(took.size()) == todo_.waves) {
            if (todo_.beside != nullptr)
                uv_close(reinterpret_cast<uv_handle_t*>(&ticks_), nullptr);
            return;
        }
        before_ = steady_clock::now();
        left_ = todo_.at_once;
        for (auto& child : children_)
            start(child);
    }

    std::vector<duration> took;

private:
    void start(uv_process_t& child) {
        char* argv[] = {const_cast<char*>(todo_.program.c_str()), nullptr};
        uv_stdio_container_t stdio[3] = {};
        stdio[0].flags = UV_IGNORE;
        for (int fd : {1, 2}) {
            stdio[fd].flags = UV_INHERIT_FD;
            stdio[fd].data.fd = fd;
        }
        uv_process_options_t options{};
        options.file = argv[0];
        options.args = argv;
        options.stdio = stdio;
        options.stdio_count = 3;
        options.exit_cb = [](uv_process_t* ended, std::int64_t, int) {
            static_cast<waves*>(ended->data)->ended(*ended);
        };
        check(uv_spawn(&loop_, &child, &options), "uv_spawn");
        child.data = this;
    }

    void ended(uv_process_t& child) {
        if (--left_ == 0)
            took.push_back(steady_clock::now() - before_);
        uv_close(reinterpret_cast<uv_handle_t*>(&child), [](uv_handle_t* handle) {
            auto* self = static_cast<waves*>(handle->data);
            if (++self->closed_ == self->todo_.at_once) {
                self->closed_ = 0;
                self->next();
            }
        });
    }

    uv_loop_t& loop_;
    const job& todo_;
    std::vector<uv_process_t> children_;
    uv_poll_t ticks_{};
    steady_clock::time_point before_;
    int left_ = 0;
    int closed_ = 0;
};

}  // namespace

std::vector<duration> run_libuv(const job& todo) {
    uv_loop_t loop;
    check(uv_loop_init(&loop), "uv_loop_init");
    waves all(loop, todo);
    all.next();
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    return std::move(all.took);
}

}  // namespace bench
