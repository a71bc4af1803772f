// SPDX-License-Identifier: BSL-1.0
#include "round_actions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

#include <sys/wait.h>

namespace chaos {

namespace {

using std::chrono::milliseconds;

constexpr const char* action_names[] = {
    "nothing", "SIGKILL", "SIGTERM", "_exit() asked", "stop() asked", "exit() asked", "drop asked"};

host_action action_of(random_numbers& random, const round_plan& plan, const sent_signals& first) {
    const int percent = random.below(100);
    if (plan.first_target == target_kind::host || (first.is_fatal && percent < 60))
        return host_action::none;
    const int action = plan.spares_host ? 50 + random.below(50) : random.below(100);
    if (action < 30)
        return host_action::kill;
    if (action < 40)
        return host_action::terminate;
    if (action < 50)
        return host_action::abort;
    return action < 70 ? host_action::stop : action < 85 ? host_action::exit : host_action::drop;
}

void perform(host_action action, const process_tree& tree) {
    switch (action) {
    case host_action::none:
        return;
    case host_action::kill:
        return tree.signal_host(SIGKILL);
    case host_action::terminate:
        return tree.signal_host(SIGTERM);
    case host_action::abort:
        return tree.send_request(host_request::abort);
    case host_action::stop:
        return tree.send_request(host_request::stop);
    case host_action::exit:
        return tree.send_request(host_request::exit);
    case host_action::drop:
        return tree.send_request(host_request::drop);
    }
}

void await_moment(process_tree& tree, const round_plan& plan) {
    if (plan.after_roles)
        tree.await_roles(static_cast<std::size_t>(plan.moment), milliseconds(500));
    else  // a random moment, for which there is no event
        std::this_thread::sleep_for(std::chrono::microseconds(plan.moment));
}

}  // namespace

round_actions::round_actions(process_tree& tree, const round_plan& plan)
    : first_target_(plan.first_target) {
    random_numbers random(plan.action_seed);
    await_moment(tree, plan);
    first_ = signal_process(tree, first_target_, random);
    if (random.chance(25))
        signal_more(tree, random);
    action_ = action_of(random, plan, first_);
    if (action_ == host_action::none)
        return;
    tree.await_host(milliseconds(random.below(200)));
    perform(action_, tree);
    // SIGKILL may interrupt that action.
    killed_at_last_ = !plan.spares_host && random.chance(30);
    if (killed_at_last_ && !tree.await_host(milliseconds(random.below(150))))
        tree.signal_host(SIGKILL);
}

void round_actions::signal_more(process_tree& tree, random_numbers& random) {
    for (int times = 1 + random.below(3); times > 0; --times) {
        tree.await_end(milliseconds(random.below(20)));
        more_.push_back(signal_process(tree, target_kind::any_process, random));
    }
}

bool round_actions::action_is_one_of(std::initializer_list<host_action> wanted) const {
    return std::ranges::find(wanted, action_) != wanted.end();
}

bool round_actions::expects(int status) const {
    // A start fails if one of its processes was killed too early.
    const bool start_may_fail = first_target_ == target_kind::any_process ||
                                first_target_ == target_kind::fork_server || !more_.empty();
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (code == a_start_failed)
        return start_may_fail;
    if (first_.is_fatal && action_ == host_action::none)
        return code == a_group_failed;
    if (WIFSIGNALED(status))
        return first_target_ == target_kind::host || killed_at_last_ ||
               action_is_one_of({host_action::kill, host_action::terminate});
    if (code == as_requested)
        return action_is_one_of({host_action::abort, host_action::exit, host_action::drop});
    return code == all_well || code == a_group_failed;
}

std::string round_actions::text() const {
    auto text = "first " + first_.text;
    for (const auto& one : more_)
        text += "; then " + one.text;
    text += fmt::format("; to the host: {}", action_names[static_cast<int>(action_)]);
    return text + (killed_at_last_ ? ", then SIGKILL" : "");
}

}  // namespace chaos
