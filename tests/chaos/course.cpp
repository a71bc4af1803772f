// SPDX-License-Identifier: BSL-1.0
#include "course.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

#include <sys/wait.h>

namespace chaos {

namespace {

using std::chrono::milliseconds;

constexpr const char* acts[] = {"nothing",      "SIGKILL",      "SIGTERM",   "_exit() asked",
                                "stop() asked", "exit() asked", "drop asked"};

second_act act_of(dice& thrown, const round_plan& plan, const blow& first) {
    const int percent = thrown.below(100);
    if (plan.who == victim::host || (first.is_fatal && percent < 60))
        return second_act::none;
    const int act = plan.spares_host ? 50 + thrown.below(50) : thrown.below(100);
    if (act < 30)
        return second_act::kill;
    if (act < 40)
        return second_act::terminate;
    if (act < 50)
        return second_act::abort;
    return act < 70 ? second_act::stop : act < 85 ? second_act::exit : second_act::drop;
}

void perform(second_act act, const family& tree) {
    switch (act) {
    case second_act::none:
        return;
    case second_act::kill:
        return tree.signal_host(SIGKILL);
    case second_act::terminate:
        return tree.signal_host(SIGTERM);
    case second_act::abort:
        return tree.ask_host(wish::abort);
    case second_act::stop:
        return tree.ask_host(wish::stop);
    case second_act::exit:
        return tree.ask_host(wish::exit);
    case second_act::drop:
        return tree.ask_host(wish::drop);
    }
}

void await_moment(family& tree, const round_plan& plan) {
    if (plan.after_lines)
        tree.await_lines(static_cast<std::size_t>(plan.moment), milliseconds(500));
    else  // a random moment, for which there is no event
        std::this_thread::sleep_for(std::chrono::microseconds(plan.moment));
}

}  // namespace

course::course(family& tree, const round_plan& plan) : who_(plan.who) {
    dice thrown(plan.rest);
    await_moment(tree, plan);
    first_ = strike(tree, who_, thrown);
    if (thrown.percent(25))
        strike_more(tree, thrown);
    act_ = act_of(thrown, plan, first_);
    if (act_ == second_act::none)
        return;
    tree.await_host(milliseconds(thrown.below(200)));
    perform(act_, tree);
    // SIGKILL may interrupt the second act.
    killed_at_last_ = !plan.spares_host && thrown.percent(30);
    if (killed_at_last_ && !tree.await_host(milliseconds(thrown.below(150))))
        tree.signal_host(SIGKILL);
}

void course::strike_more(family& tree, dice& thrown) {
    for (int blows = 1 + thrown.below(3); blows > 0; --blows) {
        tree.await_end(milliseconds(thrown.below(20)));
        more_.push_back(strike(tree, victim::anybody, thrown));
    }
}

bool course::was(std::initializer_list<second_act> acts_asked) const {
    return std::ranges::find(acts_asked, act_) != acts_asked.end();
}

bool course::expects(int status) const {
    // A start fails if one of its processes was killed too early.
    const bool start_may_fail = who_ == victim::anybody || who_ == victim::server || !more_.empty();
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (code == a_start_failed)
        return start_may_fail;
    if (first_.is_fatal && act_ == second_act::none)
        return code == a_group_failed;
    if (WIFSIGNALED(status))
        return who_ == victim::host || killed_at_last_ ||
               was({second_act::kill, second_act::terminate});
    if (code == as_asked)
        return was({second_act::abort, second_act::exit, second_act::drop});
    return code == all_well || code == a_group_failed;
}

std::string course::text() const {
    auto text = "first blow: " + first_.text;
    for (const auto& one : more_)
        text += "; then " + one.text;
    text += fmt::format("; to the host: {}", acts[static_cast<int>(act_)]);
    return text + (killed_at_last_ ? ", then SIGKILL" : "");
}

}  // namespace chaos
