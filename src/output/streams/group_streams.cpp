// SPDX-License-Identifier: BSL-1.0
// The streams of a group while its workers live.
#include "output/streams/group_streams.hpp"

#include "base/files/dispose.hpp"
#include "base/sys/descriptors.hpp"
#include "output/pipes/pipe_reader.hpp"
#include "output/pipes/pipe_writer.hpp"
#include "output/routes/pattern.hpp"
#include "output/targets/files.hpp"
#include "start/exec/exec.hpp"

#include <cohort/detail/duration.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <limits>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace cohort::output {

namespace {

/// A call that reads the rest of a worker's pipe may last this long, and at most twice as long.
/// Without a worker that holds the pipe's lock it takes microseconds.
constexpr auto reading_step = std::chrono::milliseconds(250);

bool writes_to(const stream_route& route, auto sink) {
    return std::ranges::any_of(route.sinks, [](const sink_route& each) {
        return std::holds_alternative<decltype(sink)>(each);
    });
}

void add_to(std::string& notes, const std::string& note) {
    if (note.empty() || notes.find(note) != std::string::npos)
        return;
    notes += notes.empty() ? note : "; " + note;
}

}  // namespace

/// The end of one worker's streams: what is still to be read and written, and whom to notify then.
struct group_streams::flush {
    int index;
    base::callback<void(stream_end)> read;      // empty: nobody waits
    base::callback<void(std::string)> written;  // empty: nobody waits, or it was notified
    stream_end result;
    std::size_t unread = 0;  // streams
    struct written_target {
        std::shared_ptr<target> to;
        loop::time_point latest;  // when the last of the worker's text for it was read
        bool is_written = false;
    };
    std::vector<written_target> targets;
    std::size_t unwritten = 0;
    std::optional<loop::timer_id> limit;
};

group_streams::group_streams(loop::runtime& runtime, group_routes routes, settings how)
    : runtime_(runtime), routes_(std::move(routes)), settings_(how),
      workers_(routes_.workers.size()) {
    if (routes_.buffer != 0)
        hub_ = std::make_shared<line_hub>(runtime_, routes_.buffer, routes_.buffer_while_read,
                                          settings_.start_again ? line_hub::until_end
                                                                : streams_in_queue());
}

group_streams::~group_streams() {
    // The threads of a forked copy's targets are its parent's, and may have left locks locked.
    if (!runtime_.is_own())
        return;
    for (const auto& each : targets_)
        if (each)
            each->close();
    // What still reads or feeds a worker that was given up belongs to the output thread.
    for (auto& each : workers_)
        if (each.feed || each.out_reader || each.err_reader)
            loop().post([feed = std::move(each.feed), out = std::move(each.out_reader),
                         err = std::move(each.err_reader)] {});
}

int group_streams::streams_in_queue() const noexcept {
    int count = 0;
    for (const auto& worker : routes_.workers)
        count += writes_to(worker.out, queue_route()) + writes_to(worker.err, queue_route());
    return count;
}

// --- a worker's life ---

void group_streams::worker_started(int index, limit_reached exceeded) {
    if (routes_.has_pipes)
        loop().post([self = shared_from_this(), index, exceeded = std::move(exceeded)] {
            self->begin(index, exceeded);
        });
}

void group_streams::begin(int index, const limit_reached& exceeded) {
    auto& worker = at(index);
    worker.has_ended = false;
    begin_stream(index, stream::out, exceeded);
    begin_stream(index, stream::err, exceeded);
    if (worker.in_ours)
        worker.feed = std::make_shared<pipe_writer>(loop(), std::move(worker.in_ours));
    go_on_feeding(index);
}

void group_streams::begin_stream(int index, stream from, const limit_reached& exceeded) {
    worker& of = at(index);
    auto& fd = from == stream::out ? of.out_ours : of.err_ours;
    if (!fd)
        return;
    const auto sinks =
        make_sinks({index, of.start.attempt, from}, pipe_reader::most_a_turn + pipe_capacity_);
    auto& reader = from == stream::out ? of.out_reader : of.err_reader;
    reader = std::make_shared<pipe_reader>(loop(), std::move(fd), sinks, lingering_);
    sinks->set_reader(reader);
    sinks->on_limit([&runtime = runtime_, exceeded, from](std::uint64_t limit) {
        runtime.loop().post([exceeded, from, limit] { exceeded(from, limit); });
    });
    reader->begin();
}

/// The sinks of one start's stream. They are the worker's until its next start.
std::shared_ptr<stream_sinks> group_streams::make_sinks(const stream_origin& of,
                                                        std::size_t most_left) {
    const auto& routes = routes_.workers[static_cast<std::size_t>(of.index)];
    const auto& route = of.from == stream::out ? routes.out : routes.err;
    auto& sinks = of.from == stream::out ? at(of.index).out : at(of.index).err;
    sinks = std::make_shared<stream_sinks>(
        loop(), stream_origin{of.index, of.attempt, of.from, routes.host}, route,
        stream_sinks::of_group{targets_, routes_.targets, hub_, relay_, pool_}, most_left);
    for (const auto& sink : route.sinks)
        if (const auto* to = std::get_if<target_route>(&sink); to != nullptr && !to->tag.empty())
            targets_[to->target]->set_tag(of.index, of.from, to->tag);
    return sinks;
}

void group_streams::worker_ended(int index, base::callback<void(stream_end)> read,
                                 base::callback<void(std::string)> written) {
    if (!routes_.has_pipes) {
        read({});
        return written({});
    }
    loop().post(
        [self = shared_from_this(), index, read = std::move(read), written = std::move(written)] {
            auto ending = std::make_shared<flush>();
            ending->index = index;
            ending->read = read;
            ending->written = written;
            self->end_streams(std::move(ending));
        });
}

/// Reads what the worker has left in its pipes, and ends its streams.
void group_streams::end_streams(std::shared_ptr<flush> ending) {
    worker& of = at(ending->index);
    of.has_ended = true;
    if (of.feed)
        of.feed->end();
    go_on_feeding(ending->index);
    ++ending_;
    const std::array readers{of.out_reader, of.err_reader};
    ending->unread =
        readers.size() - static_cast<std::size_t>(std::ranges::count(readers, nullptr));
    if (ending->unread == 0)
        return streams_ended(std::move(ending));
    limit_reading(ending);
    for (const auto& reader : readers)
        if (reader)
            reader->worker_ended([self = shared_from_this(), ending] {
                if (--ending->unread == 0)
                    self->streams_ended(ending);
            });
}

/// For a worker that holds the lock of its pipe for as long as it likes. In steps, because a
/// program that was stopped for a while sees that while pass at once.
void group_streams::limit_reading(const std::shared_ptr<flush>& ending) {
    ending->limit = loop().timer().at(
        std::chrono::steady_clock::now() + reading_step, [self = shared_from_this(), ending] {
            ending->limit.reset();
            const worker& of = self->at(ending->index);
            for (const auto& reader : std::array{of.out_reader, of.err_reader})
                if (reader)
                    reader->look();
            if (ending->unread != 0)
                self->limit_reading(ending);
        });
}

void group_streams::streams_ended(std::shared_ptr<flush> ending) {
    if (ending->limit)
        loop().timer().cancel(*std::exchange(ending->limit, std::nullopt));
    gather(*ending);
    --ending_;
    close_sinks();
    if (!ending->written)
        return;
    runtime_.loop().post(
        [result = std::move(ending->result), read = std::exchange(ending->read, {})]() mutable {
            read(std::move(result));
        });
    ending->unwritten = ending->targets.size();
    if (ending->unwritten == 0)
        return finish(*ending);
    for (auto& each : ending->targets)
        each.to->when_written(each.latest, [self = shared_from_this(), ending, &each] {
            each.is_written = true;
            if (--ending->unwritten == 0)
                self->finish(*ending);
        });
    ending->limit = loop().timer().at(
        detail::saturating_add(std::chrono::steady_clock::now(), settings_.flush_timeout),
        [self = shared_from_this(), ending] {
            ending->limit.reset();
            self->finish(*ending);
        });
}

bool group_streams::has_room_for(int index) const {
    const auto waits = [](const stream_route& route) {
        return std::ranges::any_of(route.sinks, [](const sink_route& each) {
            const auto* const queue = std::get_if<queue_route>(&each);
            return queue != nullptr && queue->full == when_full::block;
        });
    };
    const auto& routes = routes_.workers[static_cast<std::size_t>(index)];
    return !hub_ || !(waits(routes.out) || waits(routes.err)) || hub_->has_room();
}

void group_streams::when_room(base::callback<void()> then) {
    loop().post([self = shared_from_this(), then = std::move(then)] {
        const auto go_on = [&loop = self->runtime_.loop(), then] { loop.post(then); };
        if (self->hub_->has_room())
            return go_on();
        self->hub_->when_room([go_on] {
            go_on();
            return false;  // it starts, room or not, so the room is for the next stream
        });
    });
}

/// The targets that only this worker uses, by their places.
std::vector<std::size_t> group_streams::own_targets(int index) const {
    std::vector<std::size_t> own;
    const auto& routes = routes_.workers[static_cast<std::size_t>(index)];
    for (const auto* route : {&routes.out, &routes.err})
        for (const auto& sink : route->sinks)
            if (const auto* to = std::get_if<target_route>(&sink);
                to != nullptr && routes_.targets[to->target].is_of_one &&
                std::ranges::find(own, to->target) == own.end())
                own.push_back(to->target);
    return own;
}

void group_streams::close_own_targets(int index) {
    for (const std::size_t i : own_targets(index)) {
        const std::lock_guard lock(targets_mutex_);
        if (!targets_[i])
            continue;
        targets_[i]->close();
        const bool may_mix = settings_.start_again && !names_attempt(routes_.targets[i].path) &&
                             !targets_[i]->pending().empty();
        if (!may_mix)
            targets_[i].reset();
    }
}

/// Takes what the streams leave, and drops them.
void group_streams::gather(flush& ending) {
    worker& of = at(ending.index);
    if (of.out)
        ending.result.out = of.out->take_captured();
    if (of.err)
        ending.result.err = of.err->take_captured();
    for (const auto& sinks : {of.out, of.err}) {
        if (!sinks)
            continue;
        add_to(ending.result.note, sinks->trouble());
        for (const auto& [to, latest] : sinks->written()) {
            const auto found = std::ranges::find(ending.targets, to, &flush::written_target::to);
            if (found == ending.targets.end())
                ending.targets.push_back({to, latest});
            else
                found->latest = std::max(found->latest, latest);
        }
    }
    of.out_reader.reset();
    of.err_reader.reset();
    of.out.reset();
    of.err.reset();
}

void group_streams::finish(flush& done) {
    if (!done.written)
        return;
    if (done.limit)
        loop().timer().cancel(*std::exchange(done.limit, std::nullopt));
    std::string note;
    // Lines are dropped also after the end of their stream, by those of other streams.
    for (const auto s : {stream::out, stream::err}) {
        const auto lost = lost_bytes(done.index, s);
        add_to(note, left_out(lost, s, "nobody read them in time"));
    }
    if (hub_)
        hub_->forget_worker(done.index);
    // Of a target that has written all of this worker's text, only its error matters.
    for (const auto& each : done.targets)
        add_to(note, each.is_written ? each.to->trouble() : each.to->note());
    close_own_targets(done.index);
    runtime_.loop().post(
        [note = std::move(note), written = std::exchange(done.written, {})]() mutable {
            written(std::move(note));
        });
}

void group_streams::group_ended() {
    // Where no sink is the group's, the ends of its workers were all, so the loop may sleep. Writes
    // to workers that have never started wait for this end.
    const bool feeds_some = std::ranges::any_of(routes_.workers, [](const worker_routes& of) {
        return of.in.what == input_route::kind::feed;
    });
    if (!routes_.has_pipes || (!hub_ && routes_.targets.empty() && !feeds_some))
        return;
    loop().post([self = shared_from_this()] {
        self->has_ended_ = true;
        for (int index = 0; index < static_cast<int>(self->workers_.size()); ++index)
            if (!self->at(index).has_ended) {
                auto ending = std::make_shared<flush>();
                ending->index = index;
                self->end_streams(std::move(ending));
            }
        self->close_sinks();
    });
}

/// Elsewhere, because the last close of a directory that was removed frees it on its disk.
void group_streams::close_logs() {
    if (!routes_.log_directory.empty())
        base::dispose(std::shared_ptr<const void>(std::move(logs_)));
}

/// Once the group has ended and all its streams have.
void group_streams::close_sinks() {
    if (!has_ended_ || ending_ != 0)
        return;
    {
        const std::lock_guard lock(targets_mutex_);
        for (const auto& each : targets_)
            if (each)
                each->close();
    }
    if (hub_)
        hub_->end();
}

// The streams of a group before its workers start: pipes, files and directories.

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

/// Whether a target that was closed with the attempt before takes the lines of the next one.
bool group_streams::takes_again(std::size_t number) {
    const std::lock_guard lock(targets_mutex_);
    return targets_[number] && targets_[number]->reopen();
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
    // What the attempt before has left may not be written yet. Two targets would mix their lines in
    // one file, and each would rotate it.
    if (plan.is_of_one && takes_again(number))
        return std::nullopt;
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

// What a group's workers are fed.

bool group_streams::feeds(int index) const noexcept {
    return routes_.workers[static_cast<std::size_t>(index)].in.what == input_route::kind::feed;
}

void group_streams::write(int index, std::string text, detail::receiver to) {
    // Shared, because a task must be copyable.
    auto kept = std::make_shared<std::string>(std::move(text));
    loop().post([self = shared_from_this(), index, kept, to = std::move(to)] {
        const auto written = [self, to](std::error_code error) {
            using kind = detail::completion::kind;
            auto done = detail::completion_of(error == std::errc::operation_canceled ? kind::aborted
                                              : error                                ? kind::failed
                                                                                     : kind::done);
            if (error && done.what == kind::failed)
                done.error = std::make_exception_ptr(
                    std::system_error(error, "cohort::group::write: the worker reads no more"));
            self->runtime_.deliver(self->loop(), to, std::move(done));
        };
        self->when_fed(
            index, {to.id,
                    [self, index, kept, id = to.id, written] {
                        if (const auto& feed = self->at(index).feed)
                            feed->write(id, std::move(*kept), written);
                        else
                            written(std::make_error_code(std::errc::broken_pipe));
                    },
                    [written] { written(std::make_error_code(std::errc::operation_canceled)); }});
    });
}

void group_streams::feed(int index, std::string text, stream_writer::listener then) {
    auto kept = std::make_shared<std::string>(std::move(text));
    when_fed(index, {0,
                     [self = shared_from_this(), index, kept, then = std::move(then)] {
                         if (const auto& feed = self->at(index).feed)
                             feed->write(0, std::move(*kept), then);
                         else
                             then(std::make_error_code(std::errc::broken_pipe));
                     },
                     {}});
}

void group_streams::end_feed(int index, base::callback<void()> then) {
    when_fed(index, {0,
                     [self = shared_from_this(), index, then = std::move(then)] {
                         if (const auto& feed = self->at(index).feed)
                             feed->close_after_all();
                         then();
                     },
                     {}});
}

/// Goes on when the worker has started, or will not.
void group_streams::when_fed(int index, early_input later) {
    worker& of = at(index);
    if (of.feed || of.has_ended)
        return later.go_on();
    of.early.push_back(std::move(later));
}

void group_streams::go_on_feeding(int index) {
    for (const auto& each : std::exchange(at(index).early, {}))
        each.go_on();
}

/// @return whether a write() with this id waited for the start of the worker
bool group_streams::cancel_early(worker& of, detail::operation_id id) {
    const auto found = std::ranges::find(of.early, id, &early_input::id);
    if (found == of.early.end())
        return false;
    const auto cancel = std::move(found->cancel);
    of.early.erase(found);
    cancel();
    return true;
}

void group_streams::close_input(int index) {
    loop().post([self = shared_from_this(), index] { self->end_feed(index, [] {}); });
}

// A group whose workers and whose user are on different machines.

void group_streams::relay_to(std::shared_ptr<stream_relay> relay) {
    relay_ = std::move(relay);
    hub_.reset();
}

std::uint64_t group_streams::lost_bytes(int index, stream from) const {
    return hub_ ? hub_->lost_bytes(index, at(index).start.attempt, from) : 0;
}

std::shared_ptr<far_reader> group_streams::expect(int index, stream from,
                                                  far_reader::consumed done) {
    worker& of = at(index);
    const auto& routes = routes_.workers[static_cast<std::size_t>(index)];
    if ((from == stream::out ? routes.out : routes.err).what != stream_route::kind::piped)
        return nullptr;
    auto reader = std::make_shared<far_reader>(loop(), std::move(done));
    reader->set_sinks([weak = weak_from_this(), index, from,
                       to = std::weak_ptr(reader)](int attempt) -> std::shared_ptr<byte_sink> {
        const auto self = weak.lock();
        if (!self)
            return nullptr;
        self->at(index).start.attempt = attempt;
        // What comes over the sinks' room is bounded where it is kept.
        constexpr auto any = std::numeric_limits<std::size_t>::max();
        const auto sinks = self->make_sinks({index, attempt, from}, any);
        sinks->set_reader(to);
        return sinks;
    });
    (from == stream::out ? of.out_reader : of.err_reader) = reader;
    return reader;
}

std::shared_ptr<far_writer> group_streams::feed_by(int index, far_writer::sender send) {
    if (!feeds(index))
        return nullptr;
    auto feed = std::make_shared<far_writer>(std::move(send));
    at(index).feed = feed;
    go_on_feeding(index);
    return feed;
}

// What a group's handle asks of its streams.

void group_streams::await_lines(detail::receiver to, detail::amount wanted,
                                std::optional<detail::time_point> until) {
    if (!hub_) {
        runtime_.loop().post([&runtime = runtime_, to = std::move(to)] {
            runtime.deliver(to, detail::completion());
        });
        return;
    }
    hub_->await(std::move(to), wanted, until);
}

void group_streams::cancel(detail::operation_id id) {
    if (!routes_.has_pipes)
        return;
    loop().post([self = shared_from_this(), id] {
        if (self->hub_ && self->hub_->cancel(id))
            return;
        for (auto& each : self->workers_)
            if ((each.feed && each.feed->cancel(id)) || cancel_early(each, id))
                return;
    });
}

void group_streams::forget_lines() {
    if (hub_)
        loop().post([hub = hub_] { hub->forget(); });
}

}  // namespace cohort::output
