// SPDX-License-Identifier: BSL-1.0
#include "hosts/connection/origin_streams.hpp"

#include "hosts/values/messages.hpp"

#include <span>
#include <string_view>
#include <utility>

namespace cohort::multihost {

namespace {

std::size_t place_of(int index, stream from) noexcept {
    return 2 * static_cast<std::size_t>(index) + (from == stream::err ? 1 : 0);
}

int index_of(std::size_t place) noexcept { return static_cast<int>(place / 2); }

stream which_stream(std::size_t place) noexcept {
    return place % 2 == 0 ? stream::out : stream::err;
}

}  // namespace

origin_streams::origin_streams(std::shared_ptr<output::group_streams> group, worker_range workers,
                               say to)
    : group_(std::move(group)), workers_(workers), may_start_again_(group_->how().start_again),
      to_(std::move(to)), streams_(2 * static_cast<std::size_t>(workers.count),
                                   stream_state(reserve_of(group_->how().pipe_size))),
      feeds_(static_cast<std::size_t>(workers.count)) {}

void origin_streams::begin() {
    for (std::size_t place = 0; place < streams_.size(); ++place)
        streams_[place].reader =
            group_->expect(workers_.first + index_of(place), which_stream(place),
                           [weak = weak_from_this(), place](std::uint64_t cost) {
                               if (const auto self = weak.lock())
                                   self->consumed(place, cost);
                           });
    for (int index = 0; index < workers_.count; ++index)
        feeds_[static_cast<std::size_t>(
            index)] = group_->feed_by(workers_.first + index, [weak = weak_from_this(),
                                                               index](std::string_view text,
                                                                      bool is_end) {
            const auto self = weak.lock();
            if (!self || !self->to_)
                return;
            self->to_(frame_kind::input,
                      write_data(input_head{index, is_end}, std::as_bytes(std::span(text))));
        });
}

std::optional<breach> origin_streams::heard(const message& what) {
    if (!to_)
        return std::nullopt;
    return what.name.kind == frame_kind::data ? heard_data(what) : heard_answer(what);
}

std::optional<breach> origin_streams::heard_data(const message& what) {
    const auto came = read_data<stream_head>(what.body, workers_.count);
    if (!came.head)
        return breach::body;
    const auto& head = *came.head.value;
    auto& of = streams_[place_of(head.index, head.from)];
    const bool is_next = of.has_ended && may_start_again_ && head.attempt > of.attempt;
    const bool is_present = !of.has_ended && head.attempt == of.attempt;
    if (!of.reader || (!is_present && !is_next))
        return breach::order;
    const auto cost = came.data.size() + message_cost;
    for (auto* const credit : {&data_, &of.credit})
        if (const auto broken = credit->received(cost))
            return broken;
    of.attempt = head.attempt;
    of.has_ended = head.is_end;
    data_.consumed(cost);
    if (const auto due = data_.take_due())
        say_credit(std::nullopt, due);
    const std::string_view bytes(reinterpret_cast<const char*>(came.data.data()), came.data.size());
    const auto reader = of.reader;
    reader->take({head.attempt, head.lost_lines, head.lost_bytes, bytes, head.is_end}, cost);
    return std::nullopt;
}

std::optional<breach> origin_streams::heard_answer(const message& what) {
    auto said = read_message<input_answer>(what.body, workers_.count);
    if (!said)
        return breach::body;
    const auto feed = feeds_[static_cast<std::size_t>(said->index)];
    if (!feed || !feed->answered(said->is_taken))
        return breach::overcredit;
    return std::nullopt;
}

/// The sinks have taken what the agent has paid for.
void origin_streams::consumed(std::size_t place, std::uint64_t cost) {
    auto& credit = streams_[place].credit;
    credit.consumed(cost);
    if (const auto due = credit.take_due())
        say_credit(place, due);
}

void origin_streams::say_credit(const std::optional<std::size_t>& place, std::uint64_t bytes) {
    if (!to_)
        return;
    stream_credit given;
    given.bytes = bytes;
    if (place) {
        given.index = index_of(*place);
        given.from = which_stream(*place);
    }
    to_(frame_kind::data_credit, write_message(given));
}

void origin_streams::over() {
    to_ = {};
    for (const auto& feed : feeds_)
        if (feed)
            feed->end();
}

}  // namespace cohort::multihost
