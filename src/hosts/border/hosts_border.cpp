// SPDX-License-Identifier: BSL-1.0
#include <cohort/detail/hosts_border.hpp>

#include "group/border/create_group.hpp"
#include "hosts/origin/hosts_state.hpp"
#include "hosts/origin/make_far_group.hpp"
#include "output/targets/call_threads.hpp"
#include "protocol/registry/mark.hpp"

#include <cohort/errors.hpp>

#include <numeric>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

// Hands the calls of the headers over to the engine's thread.
namespace cohort::detail::inline v0_1 {

namespace {

/// @throws std::system_error  in a forked copy of the process that has reached them
void require_own(const hosts_ref& hosts) {
    if (!hosts->runtime().is_own())
        throw std::system_error(std::make_error_code(std::errc::no_child_process),
                                "cohort: these hosts belong to the parent of this forked process");
}

/// Runs `ask` on the engine's thread. @throws std::system_error  see require_own()
template <class Ask>
void post(const hosts_ref& hosts, Ask ask) {
    require_own(hosts);
    hosts->runtime().loop().post([hosts, ask = std::move(ask)] { ask(*hosts); });
}

template <class Ask>
void post_if_own(const hosts_ref& hosts, Ask ask) noexcept {
    if (hosts && hosts->runtime().is_own())
        hosts->runtime().loop().post([hosts, ask = std::move(ask)] { ask(*hosts); });
}

}  // namespace

hosts_ref create_hosts(const launch_settings& how) {
    auto plan = multihost::plan_of(how, {protocol::agent_argument});
    // An agent would be this program from its beginning, and never say hello.
    if (how.program_path.empty() && !protocol::worker_main_called())
        throw std::logic_error(
            "cohort: an agent executes this program again, but it has not called worker_main, "
            "which runs it. Put this line first in main(int argc, char** argv):\n"
            "    cohort::worker_main(argc, argv);");
    (void)welcome_of(plan);  // before anything starts
    spawn_plan any;
    auto& services = services_for(any);
    try {
        output::start_output(services.runtime());
    } catch (const std::system_error& e) {
        throw spawn_error(e.code(), "starting the library's threads", -1, "threads");
    }
    return std::make_shared<hosts_state>(multihost::origin{services, caller_of(services)},
                                         std::move(plan));
}

void reach_hosts(const hosts_ref& hosts, receiver to) {
    post(hosts, [to = std::move(to)](hosts_state& h) { h.begin(to); });
}

void leave_hosts(const hosts_ref& hosts, receiver to) {
    post(hosts, [to = std::move(to)](hosts_state& h) { h.leave(to); });
}

void cancel_in_hosts(const std::weak_ptr<hosts_state>& hosts, operation_id id) noexcept {
    post_if_own(hosts.lock(), [id](hosts_state& h) { h.cancel(id); });
}

void release_hosts(const hosts_ref& hosts) noexcept {
    post_if_own(hosts, [](hosts_state& h) { h.release(); });
}

void throw_empty_hosts(const char* call) {
    throw std::logic_error(std::string("cohort::hosts::") + call +
                           ": the handle is empty (default-constructed or moved from)");
}

hosts_owner::hosts_owner(std::shared_ptr<const hosts_owner> of)
    : hosts_(of->state()), of_(std::move(of)) {
    for (const int host : of_->members())
        if (hosts_->is_alive(host))
            members_.push_back(host);
}

hosts_owner::~hosts_owner() {
    if (!of_)
        release_hosts(hosts_);
}

std::vector<int> hosts_owner::members() const {
    if (of_)
        return members_;
    std::vector<int> all(hosts_->names().size());
    std::iota(all.begin(), all.end(), 0);
    return all;
}

std::vector<std::string> hosts_owner::names() const {
    std::vector<std::string> found;
    for (const int host : members())
        found.push_back(hosts_->names().at(static_cast<std::size_t>(host)));
    return found;
}

std::vector<std::string> hosts_owner::alive() const {
    std::vector<std::string> found;
    for (const int host : members())
        if (hosts_->is_alive(host))
            found.push_back(hosts_->names().at(static_cast<std::size_t>(host)));
    return found;
}

std::vector<std::string> hosts_owner::lost() const { return hosts_->lost(members()); }
int hosts_owner::port() const noexcept { return hosts_->port(); }

std::shared_ptr<group_state> hosts_owner::make_group(spawn_plan plan) const {
    require_own(hosts_);
    return multihost::make_far_group(hosts_, members(), std::move(plan));
}

}  // namespace cohort::detail::inline v0_1
