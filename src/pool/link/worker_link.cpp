// SPDX-License-Identifier: BSL-1.0
#include "pool/link/worker_link.hpp"

#include "base/files/descriptor.hpp"
#include "base/files/dispose.hpp"
#include "base/sys/descriptors.hpp"
#include "base/sys/processes.hpp"
#include "base/sys/socket.hpp"
#include "output/targets/call_threads.hpp"
#include "pool/wire/channel_of.hpp"

#include <cohort/errors.hpp>

#include <algorithm>
#include <csignal>
#include <system_error>
#include <utility>

#include <sys/socket.h>

namespace cohort::pools {
namespace {

/// A worker has READY or an answer in its socket when it ends, and no more than that.
constexpr int most_left = 4;
/// How long a worker may take to end that was let go, or whose end of the connection is closed.
constexpr std::chrono::seconds patience_with_ending{1};

/// Each end of the connection. A large buffer, because a worker that sends nothing large gets no
/// use of it, and one that does must not wait for the pool.
constexpr int wanted_buffer = 4 * static_cast<int>(largest_inlined);

base::unique_fd connect(base::unique_fd& theirs) {
    base::unique_fd ours;
    if (const auto error = base::make_socket_pair(ours, theirs))
        throw spawn_error(error, "socketpair for a worker of a pool", -1, "socket");
    for (const int end : {ours.get(), theirs.get()})
        ::setsockopt(end, SOL_SOCKET, SO_SNDBUF, &wanted_buffer, sizeof wanted_buffer);
    return ours;
}

}  // namespace

// --- the start ---

worker_link::prepared worker_link::prepare(const detail::worker_source& source, int slot,
                                           const detail::queue_message& initializer) noexcept {
    prepared made;
    try {
        base::unique_fd theirs;
        made.socket = loop::uncopied_descriptors::own(source.runtime(), connect(theirs));
        made.group = source.make_group(slot, base::own(std::move(theirs)));
        auto first = initializer;
        first.type = type_of({frame_kind::initialize});
        const auto on = channel_of(made.socket->get());
        share::outgoing packet(std::move(first), on);
        if (packet.send(on) != share::step::done)
            throw std::system_error(ENOBUFS, std::system_category(),
                                    "cohort: sending the initializer to a worker of a pool");
    } catch (...) {
        made.error = std::current_exception();
    }
    return made;
}

void worker_link::begin(prepared with) noexcept {
    group_ = std::move(with.group);
    socket_ = std::move(with.socket);
    end_.error = std::move(with.error);
    try {
        if (!group_ && !end_.error)
            throw spawn_error(std::make_error_code(std::errc::resource_unavailable_try_again),
                              "starting the library's threads", -1, "threads");
        if (!end_.error && !is_.is_stopped)
            return start();
    } catch (...) {
        end_.error = std::current_exception();
    }
    finish();
}

void worker_link::start() {
    detail::start_group(group_, {weak_from_this(), start_operation});
    watch();
}

detail::delivery worker_link::complete(detail::operation_id id,
                                       const detail::completion& result) noexcept {
    if (is_.has_ended)
        return detail::delivery::gone;
    using kind = detail::completion::kind;
    if (id == start_operation && result.what == kind::done) {
        started();
    } else {
        end_.of_group = result.end;
        end_.not_started = result.not_started;
        if (!end_.of_group && !end_.not_started)
            end_.error = result.error;
        finish();
    }
    return detail::delivery::posted;
}

void worker_link::started() {
    pid_ = detail::group_pids(*group_).front();
    if (end_.broke)
        detail::send_signal(group_, SIGKILL);
    if (is_.is_stopped)
        detail::request_stop(group_);
    detail::await_end(group_, std::nullopt, {weak_from_this(), end_operation});
    if (is_.is_ready)
        pool_.is_ready(id_);
}

/// What the worker has sent before its end still counts.
void worker_link::finish() {
    const auto self = shared_from_this();
    end_patience();
    for (int i = 0; i < most_left && socket_ && receive() == read::message; ++i)
        continue;
    // The end of the connection may be open still, where it was handed over to the worker.
    if (socket_ && share::has_unread(socket_->get()))
        note_not_taken();
    is_.has_ended = true;
    if (socket_)
        ::shutdown(socket_->get(), SHUT_RDWR);  // what watches it lets go of it then
    socket_.reset();
    sent_.packet.reset();
    pool_.ended(id_);
}

// --- to the worker ---

void worker_link::send(call_id call, std::shared_ptr<share::outgoing> packet) {
    sent_.call = call;
    sent_.packet = std::move(packet);
    sent_.pause = std::chrono::milliseconds(1);
    send_now();
}

void worker_link::send_now() {
    if (!sent_.packet || is_.is_stopped || is_.has_ended)
        return;
    auto step = share::step::over;
    std::exception_ptr refused;
    try {
        step = sent_.packet->send(channel_of(socket_->get()));
    } catch (...) {
        refused = std::current_exception();
    }
    if (!refused && (step == share::step::must_wait || step == share::step::must_retry)) {
        // Nothing shows when there is room: the worker has read all, but the user has too many
        // descriptors in flight, or the kernel has no memory.
        const auto pause = sent_.pause;
        sent_.pause = std::min(2 * pause, share::look_again_after);
        return after(pause, &worker_link::send_now);
    }
    sent_.packet.reset();  // the pool keeps it until the call has ended
    if (refused) {
        sent_.call.reset();
        pool_.not_sent(id_, refused);
    } else if (step == share::step::over) {
        pool_.not_taken(id_, *std::exchange(sent_.call, std::nullopt));
    }
}

void worker_link::retire() {
    is_.is_retired = true;
    ::shutdown(socket_->get(), SHUT_WR);
    await_ending(&worker_link::stop);
}

void worker_link::stop() {
    is_.is_stopped = true;
    sent_.packet.reset();
    if (socket_)
        ::shutdown(socket_->get(), SHUT_WR);  // if its task obeys the stop, it ends by itself
    if (group_)
        detail::request_stop(group_);
}

/// The end of the connection of a worker is closed when it ends, a moment before its process has
/// ended. One that does not end has closed it.
void worker_link::is_closed() {
    await_ending(&worker_link::kill);
    if (pid_ == 0)
        return;
    const auto ends = std::make_shared<bool>(true);
    output::call_threads::of(runtime_.loop())
        .run([ends, pid = pid_] { *ends = base::is_exiting(pid); },
             [ends, weak = weak_from_this()] {
                 const auto self = weak.lock();
                 if (self && !*ends && !self->is_.has_ended)
                     self->kill();
             });
}

/// The group sees SIGKILL in the worker's status, and the pool adds why.
void worker_link::kill() {
    end_patience();
    end_.broke = true;
    detail::send_signal(group_, SIGKILL);
    pool_.broke(id_);
}

/// @param otherwise  called if the worker has not ended in time
void worker_link::await_ending(void (worker_link::*otherwise)()) {
    end_patience();
    patience_ = runtime_.loop().timer().at(std::chrono::steady_clock::now() + patience_with_ending,
                                           [weak = weak_from_this(), otherwise] {
                                               if (const auto self = weak.lock()) {
                                                   self->patience_.reset();
                                                   ((*self).*otherwise)();
                                               }
                                           });
}

void worker_link::end_patience() {
    if (patience_)
        runtime_.loop().timer().cancel(*std::exchange(patience_, std::nullopt));
}

void worker_link::after(std::chrono::milliseconds pause, void (worker_link::*then)()) {
    runtime_.loop().timer().at(std::chrono::steady_clock::now() + pause,
                               [weak = weak_from_this(), then] {
                                   if (const auto self = weak.lock())
                                       ((*self).*then)();
                               });
}

// --- from the worker ---

void worker_link::watch() {
    // The descriptor stays open until it is readable, which finish() makes it.
    runtime_.loop().watch_readable(socket_->get(), [weak = weak_from_this(), kept = socket_] {
        if (const auto self = weak.lock())
            self->readable();
    });
}

void worker_link::readable() {
    if (is_.has_ended)
        return;
    switch (receive()) {
    case read::message:
    case read::nothing:
        if (socket_)
            watch();
        break;
    case read::later:
        after(share::look_again_after, &worker_link::readable);
        break;
    case read::over:
        if (!is_.is_retired && !is_.is_stopped)
            is_closed();
        break;
    }
}

void worker_link::look() {
    if (!is_.has_ended && socket_ && base::is_readable(socket_->get()))
        (void)receive();
}

worker_link::read worker_link::receive() {
    const auto on = channel_of(socket_->get());
    share::incoming into;
    auto step = share::step::must_wait;
    bool is_none = false;
    std::exception_ptr no_room;
    try {
        step = share::receive(on, into, share::may_wait::no);
    } catch (const sharing_error&) {
        no_room = std::current_exception();
    } catch (const std::exception&) {
        is_none = true;
    }
    for (auto& fd : into.refused)
        base::dispose(std::move(fd));
    if (no_room && !into.was_lost)
        return read::later;
    if (no_room) {
        note_lost(no_room);
        return read::message;
    }
    if (into.was_reset)
        note_not_taken();
    if (step == share::step::over)
        return read::over;
    if (step == share::step::must_wait && !is_none)
        return read::nothing;
    if (is_none || into.messages.size() != 1) {
        kill();
        return read::nothing;
    }
    hear(std::move(into.messages.front()));
    return read::message;
}

/// What the worker has sent is lost, because this process had no room for its descriptors.
void worker_link::note_lost(std::exception_ptr why) {
    if (!sent_.call || sent_.packet)
        return;
    sent_.call.reset();
    pool_.not_sent(id_, std::move(why));
}

/// The call was in the worker's socket, and is lost with that.
void worker_link::note_not_taken() {
    if (!sent_.call || sent_.packet || is_.is_stopped)
        return;
    pool_.not_taken(id_, *std::exchange(sent_.call, std::nullopt));
}

void worker_link::hear(detail::queue_message message) {
    if (end_.broke)
        return;
    const auto name = name_of(message.type);
    const auto is = [&](frame_kind kind) { return name && name->kind == kind; };
    if (is(frame_kind::ready) && !is_.is_ready && message.bytes.empty() && !message.arrived) {
        is_.is_ready = true;
        if (pid_ != 0)
            pool_.is_ready(id_);
        return;
    }
    const bool is_error = is(frame_kind::raised) && !message.arrived;
    if (!(is(frame_kind::value) || is_error) || sent_.call != name->call || sent_.packet)
        return kill();
    sent_.call.reset();
    pool_.answered(id_, *name, std::move(message));
}

}  // namespace cohort::pools
