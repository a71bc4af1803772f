// SPDX-License-Identifier: BSL-1.0
#include "hosts/origin/hosts_state.hpp"

#include "base/values/quantity.hpp"
#include "group/state/group_state.hpp"
#include "hosts/agent/agent.hpp"

#include <cohort/detail/duration.hpp>
#include <cohort/host_errors.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <map>
#include <stdexcept>
#include <utility>

namespace cohort::detail::inline v0_1 {
namespace {

/// How long the launchers may take at exit(), besides host_timeout.
constexpr std::chrono::seconds longest_leave(20);

}  // namespace

multihost::welcome welcome_of(const multihost::launch_plan& plan) {
    multihost::welcome answer;
    answer.env = plan.env;
    if (!plan.working_directory.empty())
        answer.working_directory = plan.working_directory;
    answer.must_enter = plan.working_directory_is_set;
    answer.host_timeout = plan.host_timeout;
    if (const auto size = multihost::write_message(answer).size();
        size > multihost::largest_welcome)
        throw std::invalid_argument(
            fmt::format("cohort: the environment of the agents takes {} bytes, more than {}", size,
                        multihost::largest_welcome));
    return answer;
}

hosts_state::hosts_state(multihost::origin from, multihost::launch_plan plan)
    : from_(std::move(from)), plan_(std::move(plan)), leavers_(runtime(), runtime().loop()) {
    if (plan_.names_command)
        names_ = std::make_shared<multihost::query>(from_, *plan_.names_command);
    else
        make_links();
}

void hosts_state::make_links() {
    own_ = std::make_shared<const multihost::hello>(multihost::hello_of_this_process());
    multihost::host_link::listener& self = *this;
    for (std::size_t i = 0; i < plan_.hosts.size(); ++i)
        links_.push_back(std::make_shared<multihost::host_link>(
            from_, self, static_cast<int>(i),
            multihost::host_link::settings{plan_.hosts[i], plan_.commands[i], welcome_of(plan_),
                                           own_}));
    const std::lock_guard lock(shown_.mutex);
    shown_.is_alive.resize(links_.size());
}

std::vector<std::string> hosts_state::lost(const std::vector<int>& among) const {
    const std::lock_guard lock(shown_.mutex);
    std::vector<std::string> found;
    for (const auto& [host, why] : shown_.lost)
        if (std::ranges::find(among, host) != among.end())
            found.push_back(plan_.hosts[static_cast<std::size_t>(host)] + ": " + why);
    return found;
}

bool hosts_state::is_alive(int host) const {
    const std::lock_guard lock(shown_.mutex);
    return shown_.is_alive[static_cast<std::size_t>(host)];
}

// --- the start ---

void hosts_state::begin(receiver to) {
    self_ = shared_from_this();
    runtime().add(*this);
    longest_stop_ = runtime().spans().add(
        saturating_add(time_point() + longest_leave, plan_.host_timeout).time_since_epoch());
    start_.to = std::move(to);
    start_.limit = runtime().loop().timer().at(
        saturating_add(std::chrono::steady_clock::now(), plan_.reach_within),
        [weak = weak_from_this()] {
            if (const auto self = weak.lock())
                self->time_is_up();
        });
    if (names_)
        find_names();
    else
        start_some();
}

void hosts_state::find_names() {
    names_->start([self = shared_from_this()](const multihost::query::answer& found) {
        self->names_.reset();
        self->named(found);
    });
}

void hosts_state::named(const multihost::query::answer& found) {
    try {
        if (!found.success)
            throw std::runtime_error(found.problem);
        if (!leave_.has_begun) {
            multihost::take_names(plan_, found.printed);
            make_links();
        }
    } catch (const std::invalid_argument&) {  // of nodes()
        fail(std::current_exception());
    } catch (const std::exception& e) {
        const auto& command = plan_.names_command->argv.front();
        fail(std::make_error_code(std::errc::protocol_error),
             command + ", which names the hosts: " + e.what(), "", "launcher", "");
    }
    start_some();
    look_at_end();
}

/// At a time.
int hosts_state::starts_at_once() const noexcept {
    return plan_.at_once > 0 ? static_cast<int>(plan_.at_once) : static_cast<int>(links_.size());
}

void hosts_state::start_some() {
    while (!leave_.has_begun && start_.begun < static_cast<int>(links_.size()) &&
           start_.begun - start_.done < starts_at_once())
        links_[static_cast<std::size_t>(start_.begun++)]->start();
}

void hosts_state::time_is_up() {
    start_.limit.reset();
    if (names_)
        fail(std::make_error_code(std::errc::timed_out),
             plan_.names_command->argv.front() + ", which names the hosts, does not end", "",
             "launcher", "");
    const auto why = "it has not said hello within " + base::duration_text(plan_.reach_within) +
                     multihost::question_of_hello;
    for (int i = start_.begun; i-- > 0;)
        links_[static_cast<std::size_t>(i)]->give_up(why);
}

void hosts_state::reached(int host) {
    {
        const std::lock_guard lock(shown_.mutex);
        shown_.is_alive[static_cast<std::size_t>(host)] = true;
    }
    ++start_.done;
    if (++start_.reached == static_cast<int>(links_.size()))
        complete_start(completion());
    start_some();
}

/// The others are let go, and the start fails when all launchers have ended.
void hosts_state::not_reached(int, multihost::unreached why) {
    ++start_.done;
    why.text += multihost::help_with(plan_, why.words);
    fail(why.code, why.text, why.host, why.stage, why.words);
}

void hosts_state::fail(std::error_code code, const std::string& text, const std::string& host,
                       const std::string& stage, const std::string& words) {
    fail(std::make_exception_ptr(reach_error(code, text, host, stage, words)));
}

void hosts_state::fail(std::exception_ptr why) {
    if (!start_.failure && !start_.is_cancelled)
        start_.failure = std::move(why);
    let_all_go();
}

void hosts_state::complete_start(completion how) {
    if (start_.limit)
        runtime().loop().timer().cancel(*std::exchange(start_.limit, std::nullopt));
    if (const auto to = std::exchange(start_.to, std::nullopt))
        runtime().deliver(*to, std::move(how));
}

// --- the life ---

void hosts_state::lost(int host, std::string why) {
    const std::lock_guard lock(shown_.mutex);
    const auto at = static_cast<std::size_t>(host);
    shown_.is_alive[at] = false;
    shown_.lost.emplace_back(host, std::move(why));
}

// --- the end ---

void hosts_state::leave(receiver to) {
    if (!self_) {
        runtime().deliver(to, completion());
        return;
    }
    leavers_.add(std::move(to), std::nullopt);
    let_all_go();
}

void hosts_state::cancel(operation_id id) {
    if (start_.to && start_.to->id == id) {
        start_.is_cancelled = true;
        return let_all_go();
    }
    leavers_.stop_waiting(id);
}

void hosts_state::release() {
    if (self_)
        let_all_go();
}

void hosts_state::stop_within(std::chrono::steady_clock::duration) { let_all_go(); }

void hosts_state::group_began(std::weak_ptr<group_state> group) {
    const auto* const key = group.lock().get();
    groups_[key] = std::move(group);
    if (leave_.is_wished)
        let_all_go();
}

void hosts_state::group_ended(const group_state& group) {
    groups_.erase(&group);
    if (leave_.is_wished)
        let_all_go();
}

/// Their groups are stopped before.
void hosts_state::let_all_go() {
    leave_.is_wished = true;
    const auto groups = groups_;
    for (const auto& [key, each] : groups)
        if (const auto group = each.lock())
            group->stop({});
    if (!groups_.empty() || std::exchange(leave_.has_begun, true))
        return;
    const auto keep = shared_from_this();
    if (names_)
        names_->stop();
    leave_.gone += static_cast<int>(links_.size()) - start_.begun;  // these have no launcher
    for (int i = start_.begun; i-- > 0;)
        links_[static_cast<std::size_t>(i)]->leave();
    look_at_end();
}

void hosts_state::gone(int host) {
    {
        const std::lock_guard lock(shown_.mutex);
        shown_.is_alive[static_cast<std::size_t>(host)] = false;
    }
    ++leave_.gone;
    look_at_end();
}

void hosts_state::look_at_end() {
    if (!leave_.has_begun || names_ || leave_.gone < static_cast<int>(links_.size()))
        return;
    const auto keep = std::exchange(self_, nullptr);
    if (!keep)
        return;
    runtime().remove(*this);
    longest_stop_.reset();
    if (start_.failure) {
        completion failed = completion_of(completion::kind::failed);
        failed.error = start_.failure;
        complete_start(std::move(failed));
    } else {
        complete_start(completion_of(completion::kind::aborted));
    }
    leavers_.complete_all(completion());
}

}  // namespace cohort::detail::inline v0_1
