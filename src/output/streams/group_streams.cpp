// SPDX-License-Identifier: BSL-1.0
// The streams of a group while its workers live.
#include "output/streams/group_streams.hpp"

#include "base/files/dispose.hpp"
#include "output/pipes/pipe_reader.hpp"
#include "output/pipes/pipe_writer.hpp"
#include "output/routes/pattern.hpp"

#include <cohort/detail/duration.hpp>

#include <algorithm>
#include <array>
#include <utility>

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
            targets_[to->target]->set_tag(of.index, of.from, at_attempt(to->tag, of.attempt));
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
        if (const auto own = std::exchange(targets_[i], nullptr))
            own->close();
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

}  // namespace cohort::output
