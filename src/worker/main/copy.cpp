// SPDX-License-Identifier: BSL-1.0
#include "worker/main/copy.hpp"

#include "protocol/registry/registry.hpp"
#include "worker/main/run.hpp"
#include "worker/report/attachments.hpp"
#include "worker/signals/stop_signal.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <streambuf>

#include <fcntl.h>
#include <stdio_ext.h>
#include <unistd.h>

namespace cohort::worker {
namespace {

/// Gives access to the protected members of a stream buffer.
struct pending : std::streambuf {
    static void drop(std::streambuf& buffer) {
        const auto first = (buffer.*&pending::pbase)();
        const auto next = (buffer.*&pending::pptr)();
        (buffer.*&pending::pbump)(static_cast<int>(first - next));
    }
};

/// Drops the output that the parent has not written yet, and the input that it has read ahead. If
/// the standard streams share stdio's buffers (the default), only stdio's buffers exist.
void drop_buffers() {
    for (FILE* file : {stdin, stdout, stderr})
        ::__fpurge(file);
    std::clearerr(stdin);
    std::cin.clear();
    for (std::ostream* stream : {&std::cout, &std::cerr, &std::clog})
        if (auto* file = dynamic_cast<std::filebuf*>(stream->rdbuf()))
            pending::drop(*file);
}

/// Runs after the exit hooks of the worker and before those of its parent, which it keeps from
/// running. Flushes only the standard streams: other files may hold what the parent will write.
void leave(int status, void*) {
    std::cout.flush();
    std::clog.flush();
    std::fflush(stdout);
    std::fflush(stderr);
    ::_exit(status & 0xFF);
}

}  // namespace

void run_as_copy(const protocol::control_order& order, const protocol::mark& control,
                 const std::function<detail::function_result()>& body) {
    drop_buffers();
    ::on_exit(&leave, nullptr);
    ::fcntl(control.fd, F_SETFD, FD_CLOEXEC);
    close_attachments_on_exec(order);
    worker::forget_stop_signal();
    protocol::activate(order);
    run(control, body);
}

}  // namespace cohort::worker
