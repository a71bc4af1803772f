// SPDX-License-Identifier: BSL-1.0
#include "hosts/link/remote_part.hpp"

#include <cohort/detail/duration.hpp>

#include <algorithm>

namespace cohort::multihost {
namespace {

constexpr std::size_t part_states = 7;
constexpr std::size_t part_events = 12;
constexpr std::size_t most_actions = 3;  // of one event
/// An end that comes so much too late did not run.
constexpr auto too_late = std::chrono::seconds(1);
/// How long other messages may hold up what an agent says.
constexpr auto longest_delay = std::chrono::minutes(10);

}  // namespace

struct remote_part::table {
    remote_part& part;
    const part_event& e;
    const time_point now;
    std::vector<part_action>& todo;

    using reaction = void (table::*)();
    static const reaction cells[part_states][part_events];

    void act(part_action::kind what, std::size_t worker = 0) { todo.push_back({what, worker}); }

    // The entries of the table.
    void none() {}
    void start();
    void open_gate();
    void skip() { end(part_state::reported); }
    void stop();
    void hurry();
    void started();
    void not_started();
    void one_ended();
    void reported();
    void left() { lose({part_loss::kind::left}); }
    void cut() { lose({part_loss::kind::cut}); }
    void silent() { lose({part_loss::kind::silent}); }
    void broken() { lose({part_loss::kind::broke_protocol, e.how}); }
    void unfit() { lose({part_loss::kind::broke_protocol, breach::order}); }
    void time();

    time_point report_due(time_point end) const;
    time_point promised() const;
    void lose(const part_loss& loss);
    void end(part_state how);
};

// clang-format off
/// What each event does in each state.
const remote_part::table::reaction remote_part::table::cells[part_states][part_events] = {
#define R(name) &table::name
//             start     open_gate     stop      started     not_started     ended         reported     left     cut     silent     broken     deadline
/* reached  */ {R(start), R(none),      R(skip),  R(unfit),   R(unfit),       R(unfit),     R(unfit),    R(left), R(cut), R(silent), R(broken), R(none)},
/* starting */ {R(none),  R(none),      R(stop),  R(started), R(not_started), R(one_ended), R(reported), R(left), R(cut), R(silent), R(broken), R(none)},
/* gated    */ {R(none),  R(open_gate), R(stop),  R(started), R(not_started), R(one_ended), R(reported), R(left), R(cut), R(silent), R(broken), R(time)},
/* running  */ {R(none),  R(none),      R(stop),  R(started), R(not_started), R(one_ended), R(reported), R(left), R(cut), R(silent), R(broken), R(time)},
/* stopping */ {R(none),  R(none),      R(hurry), R(started), R(not_started), R(one_ended), R(reported), R(left), R(cut), R(silent), R(broken), R(time)},
/* reported */ {R(none),  R(none),      R(none),  R(none),    R(none),        R(none),      R(none),     R(none), R(none), R(none),  R(none),   R(none)},
/* lost     */ {R(none),  R(none),      R(none),  R(none),    R(none),        R(none),      R(none),     R(none), R(none), R(none),  R(none),   R(none)},
#undef R
};
// clang-format on

void remote_part::table::start() {
    part.state_ = part_state::starting;
    act(part_action::kind::send_start);
}

void remote_part::table::open_gate() {
    part.state_ = part_state::running;
    act(part_action::kind::send_gate);
}

void remote_part::table::stop() {
    part.state_ = part_state::stopping;
    part.spans_ = e.spans;
    part.deadline_ = std::min(part.deadline_.value_or(time_point::max()), promised());
    act(part_action::kind::send_stop);
}

/// Another stop can only shorten the first.
void remote_part::table::hurry() {
    const ladder_spans shorter{std::min(part.spans_.grace_period, e.spans.grace_period),
                               std::min(part.spans_.kill_timeout, e.spans.kill_timeout)};
    if (shorter == part.spans_)
        return;
    part.spans_ = shorter;
    part.deadline_ = std::min(*part.deadline_, promised());
    act(part_action::kind::send_stop);
}

/// Also while it stops: the stop may have been sent when the agent's word was on its way.
void remote_part::table::started() {
    if (part.has_started_)
        return unfit();
    part.has_started_ = true;
    if (part.state_ == part_state::starting)
        part.state_ = part_state::gated;
    act(part_action::kind::report_started);
}

void remote_part::table::not_started() {
    if (part.has_started_)
        return unfit();
    act(part_action::kind::report_not_started);
    act(part_action::kind::send_leave);
    end(part_state::reported);
}

void remote_part::table::one_ended() {
    if (!part.has_started_ || e.worker >= part.ended_.size() || part.ended_[e.worker])
        return unfit();
    part.ended_[e.worker] = true;
    act(part_action::kind::report_ended, e.worker);
    if (--part.left_ > 0)
        return;
    const auto latest = report_due(now);
    part.deadline_ = std::min(part.deadline_.value_or(latest), latest);
}

void remote_part::table::reported() {
    if (!part.has_started_ || part.left_ > 0)
        return unfit();
    act(part_action::kind::send_leave);
    end(part_state::reported);
}

/// This end may not have run for a while, as after a suspension. Then what the agent has said
/// meanwhile is still to come, and the agent may have stood still, too. Or a slow link brings a
/// large message, and the stop may have come to the agent only behind another one.
void remote_part::table::time() {
    if (!part.deadline_ || now < *part.deadline_)
        return;
    part.first_due_ = part.first_due_.value_or(*part.deadline_);
    const bool stood_still = now - *part.deadline_ >= too_late;
    const bool is_held_up = e.is_held_up && now - *part.first_due_ < longest_delay;
    if (!stood_still && !is_held_up)
        return lose({part_loss::kind::overdue});
    part.deadline_ = part.left_ > 0 ? promised() : report_due(now);
}

/// When the agent has ended its workers, even if the stop reaches it as late as its lease allows.
time_point remote_part::table::promised() const {
    using detail::saturating_add;
    return saturating_add(saturating_add(report_due(now), part.spans_.grace_period),
                          part.spans_.kill_timeout);
}

/// When the agent has made its last report, if nobody is left at `end`.
time_point remote_part::table::report_due(time_point end) const {
    using detail::saturating_add;
    return saturating_add(saturating_add(end, part.host_timeout_), part.last_words_);
}

void remote_part::table::lose(const part_loss& loss) {
    part.loss_ = loss;
    act(part_action::kind::report_lost);
    end(part_state::lost);
}

void remote_part::table::end(part_state how) {
    part.state_ = how;
    part.deadline_.reset();
    act(part_action::kind::close);
}

std::vector<part_action> remote_part::on(const part_event& e, time_point now) {
    std::vector<part_action> todo;
    todo.reserve(most_actions);
    table row{*this, e, now, todo};
    (row.*table::cells[static_cast<std::size_t>(state_)][static_cast<std::size_t>(e.what)])();
    return todo;
}

const char* to_string(part_state s) noexcept {
    constexpr const char* names[part_states] = {"reached",  "starting", "gated", "running",
                                                "stopping", "reported", "lost"};
    return names[static_cast<std::size_t>(s)];
}

const char* to_string(part_event::kind e) noexcept {
    constexpr const char* names[part_events] = {"start",       "open_gate", "stop",     "started",
                                                "not_started", "ended",     "reported", "left",
                                                "cut",         "silent",    "broken",   "deadline"};
    return names[static_cast<std::size_t>(e)];
}

const char* to_string(part_action::kind a) noexcept {
    constexpr const char* names[] = {"send_start",   "send_gate",      "send_stop",
                                     "send_leave",   "report_started", "report_not_started",
                                     "report_ended", "report_lost",    "close"};
    return names[static_cast<std::size_t>(a)];
}

}  // namespace cohort::multihost
