// SPDX-License-Identifier: BSL-1.0
// The streams of a group before its workers start: pipes, files and directories.
#include "output/streams/group_streams.hpp"

#include "base/sys/descriptors.hpp"
#include "output/routes/pattern.hpp"
#include "output/targets/files.hpp"
#include "start/exec/exec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace cohort::output {

namespace {

using detail::start_failure;
using kind = stream_route::kind;
using source = protocol::stream_source;

start_failure failure(std::error_code error, std::string text, int index, start::stage at) {
    return {error, std::move(text), index, start::to_string(at)};
}

start::stage stage_of(stream from) {
    return from == stream::out ? start::stage::standard_output : start::stage::standard_error;
}

source place(int fd) { return {source::kind::place, fd, {}, 0, false}; }
source place_pipe(int fd) { return {source::kind::place, fd, {}, 0, true}; }
source open(const std::string& path, int flags) {
    return {source::kind::open, -1, path, flags, false};
}

/// Whether a file keeps the text that it has: that of the attempts before.
/// @param again  the worker has started before
bool keeps_text(const std::string& path, bool again) { return again && !names_attempt(path); }

/// @param anew  what stands for this program's own stream; -1: nothing needs to
source inherited(int anew) { return anew < 0 ? source() : place(anew); }

source source_of(const stream_route& route, int pipe, int attempt, bool again) {
    switch (route.what) {
    case kind::inherited:
        return inherited(pipe);
    case kind::given:
        return place(route.given);
    case kind::file:
        // O_NONBLOCK, so that a FIFO without a reader is an error and not a hang.
        return open(at_attempt(route.path, attempt),
                    O_WRONLY | O_CREAT | O_APPEND | O_NOCTTY | O_NONBLOCK |
                        (route.truncates && !keeps_text(route.path, again) ? O_TRUNC : 0));
    case kind::joined:
        return {source::kind::join, -1, {}, 0, false};
    case kind::piped:
        break;
    }
    return place_pipe(pipe);
}

source source_of(const input_route& route, int descriptor) {
    switch (route.what) {
    case input_route::kind::inherited:
        return inherited(descriptor);
    case input_route::kind::given:
        return place(route.given);
    case input_route::kind::file:
        return open(route.path, O_RDONLY);
    case input_route::kind::bytes:
        return place(descriptor);
    case input_route::kind::feed:
        break;
    }
    return place_pipe(descriptor);
}

}  // namespace

std::optional<start_failure> group_streams::prepare(base_directories& bases) {
    if (auto failed = make_log_directory(bases))
        return failed;
    targets_.resize(routes_.targets.size());
    for (std::size_t i = 0; i < targets_.size(); ++i)
        if (!routes_.targets[i].is_of_one)
            if (auto failed = open_target(bases, i, 0))
                return failed;
    return std::nullopt;
}

std::optional<start_failure> group_streams::prepare_worker(int index, int attempt,
                                                           base_directories& bases) {
    at(index).start.is_prepared = true;
    at(index).start.attempt = attempt;
    for (const std::size_t i : own_targets(index))
        if (auto failed = open_target(bases, i, attempt))
            return failed;
    if (auto failed = make_input(index))
        return failed;
    for (const auto from : {stream::out, stream::err})
        if (auto failed = make_output(bases, index, from))
            return failed;
    return std::nullopt;
}

void group_streams::worker_not_started(int index, base::callback<void()> then) {
    if (!routes_.has_pipes)
        return then ? then() : void();
    loop().post([self = shared_from_this(), index, then = std::move(then)]() mutable {
        self->at(index).has_ended = true;
        self->go_on_feeding(index);
        if (then)
            self->runtime_.loop().post(std::move(then));
    });
}

std::optional<start_failure> group_streams::make_log_directory(base_directories& bases) {
    const auto& path = routes_.log_directory;
    if (path.empty()) {
        logs_->expect(routes_.path_of_logs);
        return std::nullopt;
    }
    std::optional<log_directory::workers_of_host> of_host;
    if (routes_.part)
        of_host = {routes_.part->index, static_cast<int>(routes_.workers.size())};
    const auto& from = bases.of(routes_.base_of_logs, path);
    if (const auto error = from.error ? from.error : logs_->make(from.directory, path, of_host))
        return failure(error, fmt::format("mkdir(\"{}\")", path), -1, start::stage::logs);
    return std::nullopt;
}

std::optional<start_failure> group_streams::open_target(base_directories& bases, std::size_t number,
                                                        int attempt) {
    const target_plan& plan = routes_.targets[number];
    const auto set = [&](std::shared_ptr<target> opened) {
        const std::lock_guard lock(targets_mutex_);
        targets_[number] = std::move(opened);
    };
    target_settings settings;
    if (plan.what != target_plan::kind::file) {
        const int fd = plan.what == target_plan::kind::own_stdout ? STDOUT_FILENO : STDERR_FILENO;
        settings.name = to_string(plan.from);
        settings.style = console_style(fd, !settings_.colours);
        settings.console = &console_writer::of(
            runtime_.loop(), is_same_file(STDOUT_FILENO, fd) ? STDOUT_FILENO : fd);
        // If this program has closed the stream, another descriptor may have its number for a
        // moment.
        if (!base::survives_exec(fd)) {
            set(target::make(loop(), -1, std::move(settings)));
            return std::nullopt;
        }
        // A duplicate, because this program may close the stream while the group lives, and open a
        // file that gets its number.
        std::error_code error;
        auto stream = base::duplicate(fd, error);
        if (error)
            return failure(error, fmt::format("duplicating {}", settings.name), plan.first_worker,
                           stage_of(plan.from));
        set(target::make(loop(), std::move(stream), std::move(settings)));
        return std::nullopt;
    }
    const auto path = at_attempt(plan.path, attempt);
    const bool again = plan.is_of_one && at(plan.first_worker).start.has_worked;
    const bool keeps = plan.settings.appends || keeps_text(plan.path, again);
    const auto& from = bases.of(plan.working_directory, path);
    auto error = from.error;
    base::unique_fd file;
    if (!error)
        file = open_output(number_of(from.directory.get()), path,
                           keeps ? old_text::is_kept : old_text::is_dropped, error);
    if (error)
        return failure(error, fmt::format("open(\"{}\")", path), plan.first_worker,
                       stage_of(plan.from));
    settings.name = path;
    settings.style.timestamps = plan.settings.timestamps;
    settings.style.ends_lines = !plan.is_raw;
    settings.threads = &call_threads::of(runtime_.loop());
    if (plan.settings.rotate_at != 0)
        settings.rotate = rotated_path{rotation(plan.settings.rotate_at, plan.settings.kept), path,
                                       from.directory};
    set(target::make(loop(), std::move(file), std::move(settings)));
    return std::nullopt;
}

std::optional<start_failure> group_streams::make_input(int index) {
    const auto& route = routes_.workers[static_cast<std::size_t>(index)].in;
    std::error_code error;
    if (route.what == input_route::kind::bytes) {
        at(index).in_theirs = inputs_.make(route.text, error);
        if (error)
            return failure(error, "memfd_create for the worker's input", index,
                           start::stage::standard_input);
    } else if (route.what == input_route::kind::feed) {
        auto made = make_worker_pipe(pipe_use::worker_reads, settings_.pipe_size, error);
        if (error)
            return failure(error, "pipe2 for the worker's input", index,
                           start::stage::standard_input);
        at(index).in_theirs = std::move(made.theirs);
        at(index).in_ours = loop::uncopied_descriptors::own(runtime_, std::move(made.ours));
    }
    return std::nullopt;
}

std::optional<start_failure> group_streams::make_output(base_directories& bases, int index,
                                                        stream from) {
    const auto& routes = routes_.workers[static_cast<std::size_t>(index)];
    const auto& route = from == stream::out ? routes.out : routes.err;
    std::error_code error;
    if (route.what == kind::file && route.path.find('/') != std::string::npos &&
        route.path != "/dev/null") {
        // Without the working directory the child's own error says what is wrong.
        const auto path = at_attempt(route.path, at(index).start.attempt);
        const auto& base = bases.of(routes.working_directory, path);
        if (!base.error)
            error = make_directories(number_of(base.directory.get()), path);
        if (error)
            return failure(error, fmt::format("open(\"{}\")", path), index, stage_of(from));
        return std::nullopt;
    }
    if (route.what != kind::piped)
        return std::nullopt;
    auto made = make_worker_pipe(pipe_use::worker_writes, settings_.pipe_size, error);
    if (error)
        return failure(error, "pipe2 for the worker's output", index, stage_of(from));
    // A worker that lives on for a moment after this process may say its last words.
    if (settings_.parent_death_signal != SIGKILL)
        open_for_both(made.theirs);
    pipe_capacity_ = std::max(pipe_capacity_.load(), made.capacity);
    auto& worker = at(index);
    (from == stream::out ? worker.out_theirs : worker.err_theirs) = std::move(made.theirs);
    (from == stream::out ? worker.out_ours : worker.err_ours) = std::move(made.ours);
    return std::nullopt;
}

protocol::stream_sources group_streams::sources_of(int index) {
    const auto& routes = routes_.workers[static_cast<std::size_t>(index)];
    auto& ends = at(index);
    if (routes.in.what == input_route::kind::inherited)
        ends.in_theirs = base::opened_to_block(STDIN_FILENO);
    if (routes.out.what == kind::inherited)
        ends.out_theirs = base::opened_to_block(STDOUT_FILENO);
    if (routes.err.what == kind::inherited)
        ends.err_theirs = base::opened_to_block(STDERR_FILENO);
    return {
        source_of(routes.in, ends.in_theirs.get()),
        source_of(routes.out, ends.out_theirs.get(), ends.start.attempt, ends.start.has_worked),
        source_of(routes.err, ends.err_theirs.get(), ends.start.attempt, ends.start.has_worked)};
}

void group_streams::close_ends_of_started(int index) noexcept {
    auto& ends = at(index);
    ends.in_theirs.reset();
    ends.out_theirs.reset();
    ends.err_theirs.reset();
    ends.start.is_prepared = false;
    ends.start.has_worked = true;
}

void group_streams::close_unstarted(int index) noexcept {
    worker& ends = at(index);
    if (!std::exchange(ends.start.is_prepared, false))
        return;
    for (auto* fd :
         {&ends.in_theirs, &ends.out_theirs, &ends.err_theirs, &ends.out_ours, &ends.err_ours})
        fd->reset();
    ends.in_ours.reset();
    close_own_targets(index);
}

void group_streams::close_unstarted() noexcept {
    for (int index = 0; index < static_cast<int>(workers_.size()); ++index)
        close_unstarted(index);
    inputs_ = {};
}

}  // namespace cohort::output
