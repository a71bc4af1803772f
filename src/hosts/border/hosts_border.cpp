// SPDX-License-Identifier: BSL-1.0
#include <cohort/detail/hosts_border.hpp>

#include "group/border/create_group.hpp"
#include "hosts/reach/hosts_state.hpp"
#include "output/targets/call_threads.hpp"
#include "protocol/registry/agent_mark.hpp"
#include "protocol/registry/mark.hpp"

#include <cohort/errors.hpp>

#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

// Hands the calls of the headers over to the engine's thread.
namespace cohort::detail::inline v0_1 {

namespace {

/// Runs `ask` on the engine's thread.
/// @throws std::system_error  in a forked copy of the process that has reached them
template <class Ask>
void post(const hosts_ref& hosts, Ask ask) {
    if (!hosts->runtime().is_own())
        throw std::system_error(std::make_error_code(std::errc::no_child_process),
                                "cohort: these hosts belong to the parent of this forked process");
    hosts->runtime().loop().post([hosts, ask = std::move(ask)] { ask(*hosts); });
}

template <class Ask>
void post_if_own(const hosts_ref& hosts, Ask ask) noexcept {
    if (hosts && hosts->runtime().is_own())
        hosts->runtime().loop().post([hosts, ask = std::move(ask)] { ask(*hosts); });
}

}  // namespace

hosts_ref create_hosts(const launch_settings& how) {
    auto plan = plan_of(how, {protocol::agent_argument});
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
    return std::make_shared<hosts_state>(
        multihost::origin{services, protocol::capture_caller(services.runtime().pid())},
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

std::vector<std::string> names_of(const hosts_state& hosts) { return hosts.names(); }
std::vector<std::string> alive_of(const hosts_state& hosts) { return hosts.alive(); }
std::vector<std::string> lost_of(const hosts_state& hosts) { return hosts.lost(); }
int port_of(const hosts_state& hosts) noexcept { return hosts.port(); }

}  // namespace cohort::detail::inline v0_1
