// SPDX-License-Identifier: BSL-1.0
#include "hosts/connection/agent_streams.hpp"

#include "hosts/values/messages.hpp"

#include <cohort/detail/duration.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

namespace cohort::multihost {

namespace {

/// Of a message, so that every stream gets its turn.
constexpr std::size_t longest_message = 65'536;
/// A piece is no shorter than this for lack of credit alone.
constexpr std::size_t shortest_piece = 4'096;

}  // namespace

agent_streams::agent_streams(const std::shared_ptr<output::group_streams>& group, say to)
    : group_(group), loop_(group->loop()),
      how_{static_cast<int>(group->routes().workers.size()), group->routes().buffer,
           group->routes().buffer_while_read,
           reserve_of(group->how().pipe_size) - 2 * shortest_piece, group->how().flush_timeout},
      to_(std::move(to)), streams_(2 * group->routes().workers.size(),
                                   stream_state(reserve_of(group->how().pipe_size))),
      input_(group->routes().workers.size()) {}

void agent_streams::begin() {
    if (const auto group = group_.lock())
        group->relay_to(shared_from_this());
}

// --- from the origin ---

std::optional<breach> agent_streams::heard(const message& what) {
    if (!to_)
        return std::nullopt;
    return what.name.kind == frame_kind::input ? heard_input(what) : heard_credit(what);
}

std::optional<breach> agent_streams::heard_credit(const message& what) {
    auto given = read_message<stream_credit>(what.body, how_.workers);
    if (!given)
        return breach::body;
    if (!given->index) {
        if (const auto broken = data_.given(given->bytes))
            return broken;
    } else {
        const auto place = place_of(*given->index, given->from);
        if (const auto broken = streams_[place].credit.given(given->bytes))
            return broken;
        make_ready(place);
    }
    pump();
    return std::nullopt;
}

std::optional<breach> agent_streams::heard_input(const message& what) {
    const auto came = read_data<input_head>(what.body, how_.workers);
    if (!came.head)
        return breach::body;
    const auto& head = *came.head.value;
    const auto group = group_.lock();
    if (!group)
        return std::nullopt;
    if (!group->feeds(head.index) || (head.is_end && !came.data.empty()))
        return breach::order;
    const auto cost = came.data.size() + output::far_writer::piece_cost;
    auto& under_way = input_[static_cast<std::size_t>(head.index)];
    if (cost > output::far_writer::window - under_way)
        return breach::credit;
    under_way += cost;
    const auto answered = [weak = weak_from_this(), index = head.index, cost](bool is_taken) {
        if (const auto self = weak.lock())
            self->answer(index, cost, is_taken);
    };
    if (head.is_end) {
        group->end_feed(head.index, [answered] { answered(true); });
        return std::nullopt;
    }
    std::string text;
    text.assign(reinterpret_cast<const char*>(came.data.data()), came.data.size());
    group->feed(head.index, std::move(text),
                [answered](std::error_code error) { answered(!error); });
    return std::nullopt;
}

void agent_streams::answer(int index, std::size_t cost, bool is_taken) {
    if (!to_)
        return;
    input_[static_cast<std::size_t>(index)] -= cost;
    to_(frame_kind::input_credit, write_message(input_answer{index, is_taken}));
}

// --- to the origin ---

void agent_streams::take(const output::stream_origin& of, when_full full, std::string_view bytes) {
    if (!to_)
        return;
    auto& by = at(of);
    by.drops = full == when_full::drop_oldest;
    if (send_at_once(by, of, bytes))
        return;
    if (!by.drops && by.queue.bytes() + bytes.size() > how_.most_at_end)
        by.queue.lose(of.attempt, bytes);
    else
        by.queue.add(of.attempt, bytes);
    if (by.drops) {
        droppable_ += bytes.size();
        unread_ += bytes.size();
        make_room();
    }
    make_ready(place_of(of.index, of.from));
    pump();
}

/// Without a copy into the queue.
bool agent_streams::send_at_once(stream_state& by, const output::stream_origin& of,
                                 std::string_view bytes) {
    const auto cost = bytes.size() + message_cost;
    if (!by.queue.is_clear() || !ready_.empty() || bytes.size() > longest_message ||
        by.credit.left() < cost || data_.left() < cost)
        return false;
    const send_queue::piece all{of.attempt, {}, bytes, false};
    to_(frame_kind::data, pay_for(place_of(of.index, of.from), all));
    return true;
}

/// @return the message
std::vector<std::byte> agent_streams::pay_for(std::size_t place, const send_queue::piece& which) {
    auto& by = streams_[place];
    const auto cost = which.bytes.size() + message_cost;
    by.credit.take(cost, spend::reserve_too);
    data_.take(cost);
    if (by.drops)
        unread_ = 0;
    const stream_head head{static_cast<int>(place / 2),
                           which.attempt,
                           place % 2 == 0 ? stream::out : stream::err,
                           which.is_end,
                           which.lost.lines,
                           which.lost.bytes};
    return write_data(head, std::as_bytes(std::span(which.bytes)));
}

void agent_streams::make_ready(std::size_t place) {
    auto& of = streams_[place];
    if (!of.queue.empty() && !std::exchange(of.is_ready, true))
        ready_.push_back(place);
}

/// Streams send in turn, as far as the credit goes.
void agent_streams::pump() {
    while (to_ && !ready_.empty())
        if (!send_next(ready_.front()))
            break;
    look_whether_sent();
}

/// @return false: there is no credit for all streams together
bool agent_streams::send_next(std::size_t place) {
    auto& by = streams_[place];
    if (by.queue.empty()) {  // what was here was dropped
        by.is_ready = false;
        ready_.pop_front();
        return true;
    }
    const auto from = by.queue.has_ended() ? spend::reserve_too : spend::window;
    const auto least = std::min(by.queue.next_bytes(), shortest_piece) + message_cost;
    if (by.credit.left(from) >= least && data_.left() < least)
        return false;
    by.is_ready = false;
    ready_.pop_front();
    if (by.credit.left(from) < least)
        return true;  // until it gets credit
    const auto most = std::min(by.credit.left(from), data_.left()) - message_cost;
    const auto next = by.queue.next(std::min<std::uint64_t>(most, longest_message));
    auto message = pay_for(place, next);
    if (by.drops)
        droppable_ -= next.bytes.size();
    by.queue.sent(next);
    make_ready(place);
    to_(frame_kind::data, std::move(message));
    tell_room(by);
    return true;
}

void agent_streams::end_stream(const output::stream_origin& of) {
    if (!to_)
        return;
    at(of).queue.end(of.attempt);
    make_ready(place_of(of.index, of.from));
    pump();
}

// --- where there is no credit ---

bool agent_streams::has_room(const output::stream_origin& of) const {
    return !to_ || streams_[place_of(of.index, of.from)].queue.bytes() < most_waiting;
}

void agent_streams::when_room(const output::stream_origin& of, base::callback<bool()> then) {
    at(of).when_room = std::move(then);
}

void agent_streams::tell_room(stream_state& of) {
    if (of.when_room && (!to_ || of.queue.bytes() < most_waiting))
        (void)std::exchange(of.when_room, {})();
}

/// Of the streams that drop, the one with most here loses its oldest bytes. While the origin takes
/// some, more is kept.
void agent_streams::make_room() {
    const auto limit = unread_ > how_.buffer_while_read
                           ? how_.buffer
                           : std::max(how_.buffer, how_.buffer_while_read);
    while (droppable_ > limit) {
        const auto most = std::ranges::max_element(streams_, {}, [](const stream_state& each) {
            return each.drops ? each.queue.bytes() : 0;
        });
        const auto dropped = most->queue.drop_oldest();
        if (dropped == 0)
            return;
        droppable_ -= dropped;
    }
}

// --- their end ---

void agent_streams::when_sent(loop::task then) {
    sent_ = std::move(then);
    timer_ = loop_.timer().at(
        detail::saturating_add(std::chrono::steady_clock::now(), how_.flush_timeout),
        [weak = weak_from_this()] {
            const auto self = weak.lock();
            if (!self || !self->sent_)
                return;
            self->timer_.reset();
            self->give_up();
        });
    look_whether_sent();
}

/// Sends of each stream that it has lost the rest, but for the newest text of those that drop the
/// oldest. That waits for the link, but for no reader.
void agent_streams::give_up() {
    droppable_ = 0;
    for (std::size_t place = 0; place < streams_.size(); ++place) {
        auto& of = streams_[place];
        of.queue.drop_to(of.drops ? longest_message : 0);
        droppable_ += of.drops ? of.queue.bytes() : 0;
        make_ready(place);
    }
    pump();
    for (auto& each : streams_)
        if (!each.is_ready)
            each.queue = {};
    look_whether_sent();
}

void agent_streams::look_whether_sent() {
    if (!sent_ ||
        !std::ranges::all_of(streams_, [](const auto& each) { return each.queue.empty(); }))
        return;
    if (timer_)
        loop_.timer().cancel(*std::exchange(timer_, std::nullopt));
    loop_.post(std::exchange(sent_, {}));
}

void agent_streams::close() {
    to_ = {};
    sent_ = {};
    if (timer_)
        loop_.timer().cancel(*std::exchange(timer_, std::nullopt));
    ready_.clear();
    for (auto& each : streams_) {
        each.queue = {};
        tell_room(each);
    }
}

}  // namespace cohort::multihost
