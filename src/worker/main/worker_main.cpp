// SPDX-License-Identifier: BSL-1.0
#include "worker/main/worker_main.hpp"

#include "base/sys/descriptors.hpp"
#include "base/sys/memfd.hpp"
#include "protocol/registry/exception.hpp"
#include "protocol/registry/mark.hpp"
#include "protocol/registry/registry.hpp"
#include "protocol/trace/stack.hpp"
#include "protocol/trace/throws.hpp"
#include "worker/crash/crash.hpp"
#include "worker/main/forkserver_main.hpp"
#include "worker/report/report.hpp"
#include "worker/signals/signals.hpp"

#include <cohort/worker.hpp>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <streambuf>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <cxxabi.h>
#include <fcntl.h>
#include <stdio_ext.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cohort::worker {
namespace {

constinit report* running = nullptr;

/// @return whether this thread reports the end. Does not return if another thread, which crashed or
/// called std::terminate at the same time, came first: that thread ends the process.
bool reports_end(report& progress) noexcept {
    const auto who = progress.claim();
    if (who == report::reporter::other)
        wait_for_the_end();
    return who == report::reporter::me;
}

/// Calls exit(). noexcept, because run() must not catch what a static destructor throws. The call
/// goes by way of a variable, because the compiler assumes that exit() does not throw.
[[noreturn, gnu::noinline]] void leave(int status) noexcept {
    void (*volatile const leave_by)(int) = &std::exit;
    leave_by(status);
    ::_exit(status);
}

}  // namespace

void run(const protocol::mark& control, const std::function<detail::function_result()>& body) {
    auto& progress = *new report(control);  // handlers and other threads use it to the very end
    running = &progress;
    protocol::notify_when_own_code_begins([]() noexcept { running->called(); });
    protocol::begin_to_note_throws();
    report_terminate(progress);
    report_exit(progress);
    if (protocol::current_order()->crash_record != 0)
        report_crashes(progress);
    if (const int pipe = protocol::current_order()->stacks_fd; pipe >= 0)
        worker::report_stacks(pipe, protocol::current_order()->stacks_signal,
                              std::chrono::nanoseconds(protocol::current_order()->grace_period_ns));
    progress.entered();
    bool good = false;
    try {
        const auto result = body();
        // Sent before the result is noted, and in flight they need no worker: it may end at once.
        if (!result.attachments.empty())
            if (const auto error = send_attachments(*protocol::current_order(), result.attachments))
                throw std::system_error(error, "sending the descriptors that the result holds");
        good = !reports_end(progress) ||
               progress.returned(result, protocol::current_order()->result_limit);
    } catch (abi::__forced_unwind&) {
        throw;  // pthread_exit in the function: the process lives on as long as its other threads
    } catch (...) {
        if (reports_end(progress)) {
            const worker::stop_signal_hold later;
            progress.failed(protocol::payload_kind::raised,
                            protocol::time_of(std::current_exception()));
            progress.raised(protocol::describe_current_exception());
        }
    }
    leave(good ? 0 : 1);
}

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

namespace cohort {
namespace worker {

namespace {

/// Sets the parent-death signal again. exec clears it where it can give rights, even if it gives
/// none. It also clears it if the host runs as root and has dropped its capabilities, because the
/// program gets them back.
void keep_parent_death_signal(const protocol::control_order& order) noexcept {
    if (order.parent_death_signal == 0)
        return;
    ::prctl(PR_SET_PDEATHSIG, order.parent_death_signal);
    if (::getppid() != order.parent)
        ::_exit(127);  // the parent died before the call
}

/// Reads the group's arguments, and closes `fd`.
std::vector<std::byte> read_arguments(int fd) {
    if (fd < 0)
        return {};
    const base::unique_fd file(fd);
    struct stat status {};
    if (::fstat(fd, &status) != 0)
        throw std::system_error(errno, std::generic_category(), "the arguments' file");
    std::vector<std::byte> bytes(static_cast<std::size_t>(status.st_size));
    std::error_code error;
    const auto count = base::read_at(fd, bytes, 0, error);
    if (error)
        throw std::system_error(error, "reading the arguments");
    if (count < bytes.size())
        throw std::runtime_error("the memory file with the arguments has become shorter");
    return bytes;
}

detail::function_result run_function(const protocol::control_order& order) {
    const auto* function = protocol::find(protocol::key_of(order));
    if (function == nullptr)
        throw unknown_function(protocol::key_of(order));
    return function->invoke(order.index, read_arguments(order.arguments_fd),
                            take_attachments(order));
}

}  // namespace

void run_worker(const protocol::mark& control) {
    const auto order = protocol::read_order(control);
    if (!order)
        ::_exit(127);  // the order was there when this process was made
    keep_parent_death_signal(*order);
    base::close_on_exec(control.fd);
    if (order->arguments_fd >= 0)
        base::close_on_exec(order->arguments_fd);
    close_attachments_on_exec(*order);
    worker::forget_stop_signal();
    protocol::activate(*order);
    run(control, [&order] { return run_function(*order); });
}

}  // namespace worker

namespace {

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

[[noreturn]] void refuse_by_hand(const char* program, const char* argument, const char* what) {
    std::string line(base_name(program == nullptr ? "" : program));
    line += ": ";
    line += argument;
    line += " is how the cohort library starts ";
    line += what;
    line += '\n';
    (void)!::write(STDERR_FILENO, line.data(), line.size());
    ::_exit(127);
}

/// Sets the process' name, which is "exe" if it was executed by way of /proc/self/exe.
void take_name(const char* program) {
    if (program != nullptr)
        ::prctl(PR_SET_NAME, std::string(base_name(program)).c_str());
}

}  // namespace

void worker_main(int argc, char** argv) {
    protocol::note_worker_main_call();
    if (argc < 2 || argv == nullptr || argv[1] == nullptr)
        return;
    if (argv[1] == std::string_view(protocol::agent_argument)) {
        if (!protocol::may_be_agent())
            refuse_by_hand(argv[0], argv[1],
                           "its agents on other hosts: it cannot be given by hand (standard input "
                           "or output is a terminal, or the program has more rights than its "
                           "caller)");
        take_name(argv[0]);
        protocol::run_agent();
    }
    const auto mark = protocol::parse_mark(argv[1]);
    if (!mark && !protocol::looks_like_mark(argv[1]))
        return;
    if (protocol::worker_main_reached())
        return;
    if (!mark || !protocol::holds(*mark))
        refuse_by_hand(argv[0], argv[1],
                       "its worker processes: it cannot be given by hand (this descriptor is not "
                       "that control file)");
    protocol::note_worker_main();
    take_name(argv[0]);
    if (mark->names == protocol::mark::what::server)
        worker::serve(*mark);
    worker::run_worker(*mark);
}

}  // namespace cohort
