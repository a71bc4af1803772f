// SPDX-License-Identifier: BSL-1.0
#include "hosts/connection/connection.hpp"

#include "hosts/link/bodies.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <utility>

namespace cohort::multihost {
namespace {

/// Of what is written at once, so that a beat waits for no more than this. The way out writes no
/// more in a turn.
constexpr std::size_t longest_write = 65'536;
/// A message that has no more room than this in a write begins with the next one.
constexpr std::size_t least_room = 4'096;
/// How long the loop may take to read what the other end has sent before its lease ended.
constexpr auto time_to_read = std::chrono::milliseconds(50);

/// These are small, and mean the same wherever they stand between others.
bool is_urgent(frame_kind kind) noexcept {
    return kind == frame_kind::beat || kind == frame_kind::gate || kind == frame_kind::stop ||
           kind == frame_kind::hold || kind == frame_kind::signal || kind == frame_kind::failed ||
           kind == frame_kind::data_credit || kind == frame_kind::input_credit;
}

}  // namespace

connection::connection(loop::engine& loop, base::unique_fd in,
                       std::shared_ptr<base::unique_fd> out, const settings& how)
    : loop_(loop), ours_(how.ours), session_(how.session.value_or(0)),
      knows_session_(how.session.has_value()), reader_(other(how.ours), how.largest, how.session),
      lease_(how.lease, std::chrono::steady_clock::now()) {
    in_fd_ = std::move(in);
    out_fd_ = std::move(out);
}

connection::~connection() = default;

void connection::begin(std::weak_ptr<listener> to) {
    listener_ = std::move(to);
    out_ = std::make_shared<output::pipe_writer>(loop_, std::move(out_fd_));
    in_ = std::make_shared<output::pipe_reader>(loop_, std::move(in_fd_), shared_from_this(),
                                                std::make_shared<std::atomic<int>>(0));
    in_->begin();
    if (!knows_session_)
        return;  // the other end speaks first
    frame_writer frames(ours_, session_);
    frames.add_greeting();
    write(frames);
}

// --- from the other end ---

void connection::take(std::string_view bytes) {
    if (is_.over)
        return;
    bytes_.moved.fetch_add(bytes.size(), std::memory_order_relaxed);
    const auto self = shared_from_this();
    std::vector<message> heard;
    std::optional<breach> broken;
    try {
        broken = reader_.feed(std::as_bytes(std::span(bytes)), heard);
    } catch (const std::bad_alloc&) {
        return over({connection_end::kind::no_memory});
    }
    if (!is_.deaf && (knows_session_ || reader_.session()))
        lease_.received(std::chrono::steady_clock::now());
    for (auto& each : heard) {
        if (is_.over)
            return;
        hear(std::move(each));
    }
    if (broken && !is_.over)
        return over({connection_end::kind::broken, broken});
    if (!is_.over && knows_session_ && !is_.deaf)
        arm();
}

void connection::hear(message what) {
    if (!std::exchange(knows_session_, true)) {
        session_ = *reader_.session();
        frame_writer frames(ours_, session_);
        frames.add_greeting();
        write(frames);
    }
    if (what.name.kind == frame_kind::beat) {
        const auto found = read_beat(what.body);
        if (!found)
            return over({connection_end::kind::broken, breach::body});
        return lease_.received_beat(*found, std::chrono::steady_clock::now());
    }
    is_.left = is_.left || what.name.kind == frame_kind::bye;
    if (const auto to = listener_.lock())
        to->heard(std::move(what));
}

void connection::read_on() {
    if (--not_reading_ > 0 || is_.over)
        return;
    lease_.received(std::chrono::steady_clock::now());
    arm();
    (void)in_->go_on();
}

void connection::end(std::error_code) {
    over({is_.left ? connection_end::kind::left : connection_end::kind::cut});
}

// --- to the other end ---

void connection::send(const frame_name& name, std::span<const std::byte> body) {
    std::vector<std::byte> copy;
    copy.assign(body.begin(), body.end());
    send(name, std::move(copy));
}

void connection::send(const frame_name& name, std::vector<std::byte>&& body) {
    if (is_.over || is_.finishing)
        return;
    bytes_.unsent += body.size();
    waiting_.push_back({name, std::move(body)});
    pump();
    if (!std::exchange(is_.opened, true))
        arm();
}

void connection::finish(loop::task then) {
    is_.finishing = true;
    finished_ = std::move(then);
    pump();
}

void connection::abandon() {
    listener_.reset();
    over({connection_end::kind::cut});
}

/// What is urgent, small messages and a piece of a large one go out in one write.
void connection::pump() {
    if (is_.writing || is_.over || !knows_session_ || !out_)
        return;
    if (waiting_.empty()) {
        if (is_.finishing)
            out_->close_after_all();
        if (const auto finished = std::exchange(finished_, nullptr); is_.finishing && finished)
            finished();
        return;
    }
    frame_writer frames(ours_, session_);
    add_next(frames);
    write(frames);
}

/// May be called again after an exception.
void connection::add_next(frame_writer& frames) {
    // The first message opens the link. Nothing overtakes the start of its group, because an agent
    // takes what it does not know for what is over, nor that this has started.
    std::set<std::uint32_t> unstarted;
    for (auto at = waiting_.begin(); is_.first_written && at != waiting_.end();)
        if (at->name.kind == frame_kind::start || at->name.kind == frame_kind::started) {
            unstarted.insert(at->name.group);
            ++at;
        } else if (is_urgent(at->name.kind) && !unstarted.contains(at->name.group)) {
            frames.add(at->name, at->body);
            bytes_.unsent -= at->body.size();
            at = waiting_.erase(at);
        } else {
            ++at;
        }
    while (!waiting_.empty() && frames.size() + least_room <= longest_write) {
        auto& next = waiting_.front();
        const auto room = longest_write - frames.size() - header_size - 1;
        const auto done = frames.add_piece(next.name, next.body, next.done, room);
        bytes_.unsent -= done - next.done;
        next.done = done;
        if (done < next.body.size())
            return;
        waiting_.pop_front();
        is_.first_written = true;
    }
}

void connection::write(frame_writer& frames) {
    is_.writing = true;
    const auto bytes = frames.take();
    bytes_.moved.fetch_add(bytes.size(), std::memory_order_relaxed);
    std::string text;
    text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    out_->write(0, std::move(text), [weak = weak_from_this()](std::error_code error) {
        if (const auto self = weak.lock())
            self->wrote(error);
    });
}

void connection::wrote(std::error_code error) {
    is_.writing = false;
    if (is_.over)
        return;
    if (error) {  // what the other end has sent before may still say more, but not for ever
        is_.deaf = true;
        return;
    }
    lease_.sent(std::chrono::steady_clock::now());
    pump();
}

// --- the lease ---

void connection::look_at_lease() {
    if (not_reading_ > 0)
        lease_.received(std::chrono::steady_clock::now());
    for (;;) {
        switch (lease_.next(std::chrono::steady_clock::now())) {
        case lease_action::wait:
            return arm();
        case lease_action::send_beat:
            send({frame_kind::beat},
                 write_beat(lease_.make_beat(std::chrono::steady_clock::now())));
            break;
        case lease_action::read:
            timer_ = loop_.timer().at(std::chrono::steady_clock::now() + time_to_read,
                                      [weak = weak_from_this()] {
                                          const auto self = weak.lock();
                                          if (!self || self->is_.over)
                                              return;
                                          self->timer_.reset();
                                          self->lease_.has_read();
                                          self->look_at_lease();
                                      });
            return;
        case lease_action::end:
            return over({connection_end::kind::silent});
        }
        if (is_.over)
            return;
    }
}

void connection::arm() {
    if (timer_)
        loop_.timer().cancel(*std::exchange(timer_, std::nullopt));
    const auto deadline = lease_.deadline();
    if (!deadline || is_.over || !is_.opened)
        return;
    timer_ = loop_.timer().at(*deadline, [weak = weak_from_this()] {
        if (const auto self = weak.lock(); self && !self->is_.over) {
            self->timer_.reset();
            self->look_at_lease();
        }
    });
}

void connection::over(const connection_end& how) {
    if (std::exchange(is_.over, true))
        return;
    const auto self = shared_from_this();
    if (timer_)
        loop_.timer().cancel(*std::exchange(timer_, std::nullopt));
    waiting_.clear();
    bytes_.unsent = 0;
    if (out_)
        out_->end();
    in_.reset();
    if (const auto to = listener_.lock())
        to->ended(how);
}

}  // namespace cohort::multihost
