// SPDX-License-Identifier: BSL-1.0
#include "hosts/origin/far_part.hpp"

#include "hosts/values/messages.hpp"

#include <chrono>
#include <utility>

namespace cohort::multihost {
namespace {

/// A link that moves so many bytes in the time that an agent has for its report is busy with large
/// messages. Beats alone are far less.
constexpr std::uint64_t least_of_busy_link = 65'536;

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
            how_.last_words),
      unread_(runtime_, link_) {
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
        say(frame_kind::signal, write_message(signal_request{index, signo}));
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

// --- the machine ---

void far_part::happen(const part_event& e) {
    const auto keep = group_.lock();
    const auto self = shared_from_this();
    const auto now = std::chrono::steady_clock::now();
    for (const auto& action : part_.on(e, now))
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
            say(frame_kind::stop, write_message(part_.spans()));
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
        loss_.why = std::string("it broke the protocol: ") + to_string(*loss.how);
        link_->parts().refuse(*loss.how);
    }
    listener_.part_lost(*this, loss_.why, loss_.last_heard);
}

/// A stop that came meanwhile follows it.
void far_part::send_start() {
    auto bytes = std::make_shared<std::optional<std::vector<std::byte>>>();
    runtime_.parsing().run(
        [bytes, plan = plan_, part = how_.part] { *bytes = write_plan(*plan, part); },
        [self = shared_from_this(), keep = group_.lock(), bytes] {
            if (self->part_.is_over()) {
                self->plan_.reset();
            } else if (!*bytes) {
                self->runtime_.loop().timer().at(
                    std::chrono::steady_clock::now() + pause,
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
    const auto at = part_.deadline();
    if (at == deadline_.at && deadline_.timer)
        return;
    if (deadline_.timer)
        runtime_.loop().timer().cancel(*std::exchange(deadline_.timer, std::nullopt));
    deadline_.at = at;
    deadline_.moved = link_->parts().link().moved();
    if (at)
        deadline_.timer =
            runtime_.loop().timer().at(*at, [self = shared_from_this(), keep = group_.lock()] {
                self->deadline_.timer.reset();
                const bool is_held_up = self->is_held_up();
                self->happen({.what = part_event::kind::deadline, .is_held_up = is_held_up});
            });
}

bool far_part::is_held_up() const {
    return in_.is_reading ||
           link_->parts().link().moved() - deadline_.moved >= least_of_busy_link;
}

void far_part::say(frame_kind kind, std::vector<std::byte> body) {
    link_->parts().say({kind, how_.group}, std::move(body));
}

}  // namespace cohort::multihost
