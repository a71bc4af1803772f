// SPDX-License-Identifier: BSL-1.0
#include "hosts/origin/far_part.hpp"

#include "base/files/dispose.hpp"
#include "base/sys/patiently.hpp"
#include "hosts/values/messages.hpp"

#include <chrono>
#include <utility>

namespace cohort::multihost {
namespace {

using namespace std::chrono_literals;

/// When to try again where a message can't be read, because there is no thread or no memory.
constexpr auto pause_of_reading = 100ms;
constexpr int most_attempts = base::longest_wait_for_memory / pause_of_reading;
/// How many messages may wait here, besides some for each worker. An agent that sends more does so
/// to fill the memory.
constexpr int most_unread = 10'000;
constexpr int most_unread_of_worker = 4;

}  // namespace

far_part::far_part(loop::runtime& runtime, listener& of, std::shared_ptr<host_link> link,
                   settings how, const std::shared_ptr<output::group_streams>& streams)
    : runtime_(runtime), listener_(of), link_(std::move(link)),
      streams_(std::make_shared<origin_streams>(
          streams, how.part.workers,
          [to = link_, group = how.group](frame_kind kind, const std::vector<std::byte>& body) {
              to->parts().link().send({kind, group}, body);
          })),
      how_(std::move(how)),
      part_(static_cast<std::size_t>(how_.part.workers.count), link_->host_timeout(),
            how_.last_words) {
    how_.ends.workers = workers().count;
}

void far_part::begin(std::weak_ptr<const void> group,
                     std::shared_ptr<const detail::spawn_plan> plan) {
    group_ = std::move(group);
    plan_ = std::move(plan);
    how_.ends.earliest = std::chrono::steady_clock::now();
    link_->open_part(how_.group, shared_from_this(), how_.largest_message);
    runtime_.output().post([streams = streams_] { streams->begin(); });
    happen({part_event::kind::start});
}

void far_part::stop(const ladder_spans& spans) {
    happen({.what = part_event::kind::stop, .spans = spans});
}

void far_part::hold() {
    if (has_started() && !part_.is_over())
        say(frame_kind::hold);
}

void far_part::signal(std::optional<int> index, int signo) {
    if (index)
        *index -= workers().first;
    if (!part_.is_over() && !plan_)
        say(frame_kind::signal, base::patiently([&] {
                return write_message(signal_request{index, signo});
            }));
}

bool far_part::ask_usage() {
    if (!has_started() || part_.is_over())
        return false;
    say(frame_kind::usage);
    return true;
}

void far_part::lose_agent(const char* why) {
    loss_.why = why;
    loss_.last_heard = std::chrono::steady_clock::now();
    const bool was_over = part_.is_over();
    happen({part_event::kind::silent});
    if (!was_over)
        link_->give_up_agent(why);
}

// --- from the agent ---

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
    if (++in_.unread > most_unread + most_unread_of_worker * workers().count)
        return link_->parts().link().refuse(breach::order);
    auto one = base::make_shared_patiently<news>(news{std::move(what), when});
    if (const auto& said = *one->said; said.name.kind == frame_kind::failed)
        one->failed = read_message<failed_worker>(said.body, workers().count);
    runtime_.loop().post(
        [self = shared_from_this(), one = std::move(one)] { self->add(std::move(*one)); });
}

/// Behind what its agent has said before.
void far_part::link_lost(const link_loss& how) { add({.loss = how}); }

void far_part::add(news one) {
    in_.queue.push_back(std::move(one));
    read_next();
}

void far_part::read_next() {
    while (!in_.is_reading && !in_.queue.empty()) {
        const auto keep = group_.lock();
        if (!keep || part_.is_over())
            return base::dispose(base::make_shared_patiently<const base::patient_deque<news>>(
                std::exchange(in_.queue, {})));
        if (in_.queue.front().said && !in_.queue.front().failed)
            return read(in_.queue.front());
        auto next = std::move(in_.queue.front());
        in_.queue.pop_front();
        if (next.failed) {
            --in_.unread;
            take_failure(*next.failed, next.when);
            continue;
        }
        loss_ = std::move(next.loss);
        happen({.what = loss_.how, .how = loss_.broken});
    }
}

end_reader_place far_part::place_at(const arrival& when) const {
    auto place = how_.ends;
    place.now = when.at - when.under_way;
    place.offset = when.offset;
    place.time_of_day =
        when.time_of_day -
        std::chrono::duration_cast<std::chrono::system_clock::duration>(when.under_way);
    return place;
}

/// The workers decide how long this takes, so it is done elsewhere.
void far_part::read(news& one) {
    in_.is_reading = true;
    const auto place = place_at(one.when);
    auto result = base::make_shared_patiently<reading>();
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
        runtime_.loop().timer().at(std::chrono::steady_clock::now() + pause_of_reading,
                                   [self = shared_from_this(), keep = group_.lock()] {
                                       self->in_.is_reading = false;
                                       self->read_next();
                                   });
        return;
    }
    in_.attempts = 0;
    in_.queue.pop_front();
    --in_.unread;
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
    failed_.emplace(said->index, place_at(when).when(said->at));
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

// --- the machine ---

void far_part::happen(const part_event& e) {
    const auto keep = group_.lock();
    const auto self = shared_from_this();
    const auto now = std::chrono::steady_clock::now();
    for (const auto& action : base::patiently([&] { return part_.on(e, now); }))
        perform(action);
    arm_deadline();
}

void far_part::perform(const part_action& what) {
    switch (what.what) {
    case part_action::kind::send_start:
        return send_start();
    case part_action::kind::send_gate:
        return say(frame_kind::gate);
    case part_action::kind::send_stop:
        if (!plan_)  // else it follows the plan
            say(frame_kind::stop, base::patiently([&] { return write_message(part_.spans()); }));
        return;
    case part_action::kind::send_leave:
        return say(frame_kind::leave);
    case part_action::kind::report_started:
        return listener_.part_started(*this, in_.current->started->pids);
    case part_action::kind::report_not_started: {
        auto why = std::move(*in_.current->not_started);
        if (why.index >= 0)
            why.index += workers().first;
        return listener_.part_not_started(*this, std::move(why));
    }
    case part_action::kind::report_ended:
        return listener_.worker_ended(*this, std::move(*in_.current->ended));
    case part_action::kind::report_lost:
        return report_loss();
    case part_action::kind::close:
        link_->parts().close(how_.group);
        runtime_.output().post([streams = streams_] { streams->over(); });
        return listener_.part_is_over(*this);
    }
}

/// What the agent did decides, and then its link ends; or the link's end does.
void far_part::report_loss() {
    const auto& loss = *part_.loss();
    if (loss_.last_heard == time_point())
        loss_.last_heard = std::chrono::steady_clock::now();
    if (loss.why == part_loss::kind::overdue) {
        loss_.why = too_slow;
        link_->give_up_agent(loss_.why);
    } else if (loss_.why.empty()) {
        loss_.why = base::patiently(
            [&] { return std::string("it broke the protocol: ") + to_string(*loss.how); });
        link_->parts().refuse(*loss.how);
    }
    listener_.part_lost(*this, loss_.why, loss_.last_heard);
}

/// A stop that came meanwhile follows it.
void far_part::send_start() {
    auto bytes = base::make_shared_patiently<std::optional<std::vector<std::byte>>>();
    runtime_.parsing().run(
        [bytes, plan = plan_, part = how_.part] { *bytes = write_plan(*plan, part); },
        [self = shared_from_this(), keep = group_.lock(), bytes] {
            if (self->part_.is_over()) {
                self->plan_.reset();
            } else if (!*bytes) {
                self->runtime_.loop().timer().at(
                    std::chrono::steady_clock::now() + pause_of_reading,
                    [self, keep] { self->send_start(); });
            } else {
                self->plan_.reset();
                self->say(frame_kind::start, std::move(**bytes));
                if (self->part_.current() == part_state::stopping)
                    self->perform({part_action::kind::send_stop});
            }
        });
}

void far_part::arm_deadline() {
    if (deadline_)
        runtime_.loop().timer().cancel(*std::exchange(deadline_, std::nullopt));
    if (const auto at = part_.deadline())
        deadline_ =
            runtime_.loop().timer().at(*at, [self = shared_from_this(), keep = group_.lock()] {
                self->deadline_.reset();
                self->happen({part_event::kind::deadline});
            });
}

void far_part::say(frame_kind kind, std::vector<std::byte> body) {
    link_->parts().say({kind, how_.group}, std::move(body));
}

}  // namespace cohort::multihost
