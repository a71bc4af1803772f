// SPDX-License-Identifier: BSL-1.0
// How a part takes what its agent says.
#include "hosts/origin/far_part.hpp"

#include "base/files/dispose.hpp"
#include "hosts/values/messages.hpp"

#include <chrono>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

namespace cohort::multihost {
namespace {

/// How often to try again where a message can't be read, because there is no thread or no memory.
constexpr int most_attempts = std::chrono::seconds(10) / far_part::pause;

}  // namespace

void far_part::heard(message what, const arrival& when) {
    switch (what.name.kind) {
    case frame_kind::data:
    case frame_kind::input_credit:
        if (const auto broken = streams_->heard(what))
            link_->parts().link().refuse(*broken);
        return;
    case frame_kind::started:
    case frame_kind::not_started:
    case frame_kind::begun:
    case frame_kind::failed:
    case frame_kind::ended:
    case frame_kind::used:
    case frame_kind::reported:
        break;
    default:
        return link_->parts().link().refuse(breach::order);
    }
    const auto size = what.body.size();
    auto one = std::make_shared<news>(news{std::move(what), size, when});
    if (const auto& said = *one->said; said.name.kind == frame_kind::failed)
        one->failed = read_message<failed_worker>(said.body, workers().count);
    unread_.came(size);
    runtime_.loop().post(
        [self = shared_from_this(), one = std::move(one)] { self->add(std::move(*one)); });
}

/// Behind what its agent has said before.
void far_part::link_lost(const link_loss& how) { add({.loss = how}); }

/// A failure waits for nothing but the start, also not for a large message that is being read.
void far_part::add(news one) {
    const auto keep = group_.lock();
    if (one.failed && has_started() && keep && !part_.is_over()) {
        unread_.taken(one.size);
        return take_failure(*one.failed, one.when);
    }
    in_.queue.push_back(std::move(one));
    read_next();
}

void far_part::read_next() {
    while (!in_.is_reading && !in_.queue.empty()) {
        const auto keep = group_.lock();
        if (!keep || part_.is_over())
            return forget_news();
        if (in_.queue.front().said && in_.attempts == 0)
            unread_.taken(in_.queue.front().size);
        if (in_.queue.front().said && !in_.queue.front().failed)
            return read(in_.queue.front());
        auto next = std::move(in_.queue.front());
        in_.queue.pop_front();
        if (next.failed) {
            take_failure(*next.failed, next.when);
            continue;
        }
        loss_ = std::move(next.loss);
        happen({.what = loss_.how, .how = loss_.broken});
    }
}

void far_part::forget_news() {
    for (const auto& each : in_.queue)
        if (each.said)
            unread_.taken(each.size);
    base::dispose(std::make_shared<const std::deque<news>>(std::exchange(in_.queue, {})));
}

/// The workers decide how long this takes, so it is done elsewhere.
void far_part::read(news& one) {
    in_.is_reading = true;
    const auto place = place_at(how_.ends, one.when);
    auto result = std::make_shared<reading>();
    // The queue keeps the message until it is read. What it takes is given back here.
    const auto work = [result, place, &said = *one.said] {
        *result = read_news(said, place);
        std::vector<std::byte>().swap(said.body);
    };
    runtime_.parsing(one.said->body.size())
        .run(work, [self = shared_from_this(), keep = group_.lock(), result = std::move(result)] {
            self->was_read(result);
        });
}

void far_part::was_read(const std::shared_ptr<reading>& result) {
    in_.is_reading = false;
    if (!*result && ++in_.attempts < most_attempts) {
        in_.is_reading = true;
        runtime_.loop().timer().at(std::chrono::steady_clock::now() + pause,
                                   [self = shared_from_this(), keep = group_.lock()] {
                                       self->in_.is_reading = false;
                                       self->read_next();
                                   });
        return;
    }
    in_.attempts = 0;
    in_.queue.pop_front();
    if (!*result) {
        lose_agent(no_memory_here);
    } else if (!part_.is_over()) {
        in_.current = &**result;
        take(**result);
        in_.current = nullptr;
    }
    read_next();
}

void far_part::take(agent_news& result) {
    switch (result.kind) {
    case frame_kind::started:
        if (!result.started ||
            result.started->pids.size() != static_cast<std::size_t>(workers().count))
            return breaks(breach::body);
        return happen({part_event::kind::started});
    case frame_kind::not_started:
        if (!result.not_started || !result.not_started->code)
            return breaks(breach::body);
        return happen({part_event::kind::not_started});
    case frame_kind::begun:
        return take_beginning(result.begun);
    case frame_kind::used:
        return result.used ? listener_.used(*this, *result.used) : breaks(breach::body);
    case frame_kind::ended:
        return take_end(result.ended);
    default:
        return happen({part_event::kind::reported});
    }
}

void far_part::take_beginning(read_value<begun_worker>& said) {
    if (!said)
        return breaks(breach::body);
    if (!has_started() || part_.has_ended(static_cast<std::size_t>(said->index)))
        return breaks(breach::order);
    listener_.worker_begun(workers().first + said->index, said->pid);
}

/// The machine counts ends, which come later.
void far_part::take_failure(read_value<failed_worker>& said, const arrival& when) {
    if (!said)
        return breaks(breach::body);
    if (!has_started() || part_.has_ended(static_cast<std::size_t>(said->index)))
        return breaks(breach::order);
    failed_.emplace(said->index, place_at(how_.ends, when).when(said->at));
    listener_.worker_has_failed();
}

/// The machine counts last ends only.
void far_part::take_end(read_value<detail::ended_worker>& end) {
    if (!end)
        return breaks(breach::body);
    const auto worker = static_cast<std::size_t>(end->left->index);
    if (!end->restarts)
        return happen({.what = part_event::kind::ended, .worker = worker});
    if (!has_started() || part_.has_ended(worker) || end->left->attempt >= how_.most_restarts)
        return breaks(breach::order);
    perform({part_action::kind::report_ended, worker});
}

void far_part::breaks(breach how) {
    happen({.what = part_event::kind::broken, .how = how});
}

}  // namespace cohort::multihost
