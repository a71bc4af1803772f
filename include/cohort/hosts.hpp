// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/asio.hpp>
#include <cohort/detail/hosts_operations.hpp>
#include <cohort/host_errors.hpp>
#include <cohort/launchers.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cohort COHORT_ASIO_NAMESPACE {

/// Machines that run workers of this program, reached by `co_await reach(ssh("a", "b"))`. A handle:
/// copies are the same hosts.
///
/// On each host an agent waits, which is this program, and is reached by an engine's own command:
/// srun, ssh, kubectl. cohort opens no port and keeps no secret. A host whose link ends, or is
/// silent for the launcher's host_timeout, is lost: its agent ends its workers and itself. Groups
/// run on hosts by options::on().
///
/// When the last handle is dropped, and the last group on the hosts has ended, the agents end in
/// the background; the destructor never blocks.
/// A default-constructed or moved-from handle is *empty*: every call but valid(), assignment and
/// destruction throws std::logic_error (asynchronous ones through their completion).
/// @thread_safety distinct handles: safe. One handle: only its const calls.
class hosts {
public:
    /// An empty handle.
    hosts() noexcept = default;

    /// False for an empty handle.
    bool valid() const noexcept { return owner_ != nullptr; }
    /// How many there are, the lost ones included.
    int size() const { return owner("size").size(); }
    /// The names of all, in their order.
    std::vector<std::string> names() const { return owner("names").names(); }
    /// The names of those that live, in their order.
    std::vector<std::string> alive() const { return owner("alive").alive(); }
    /// The lost ones, with the reason: "beta: no beat for 10 s". In the order of their losses.
    std::vector<std::string> lost() const { return owner("lost").lost(); }
    /// The port that workers are told as MASTER_PORT.
    int port() const { return owner("port").port(); }

    /// A handle of those that live now: a group does not start if a lost host is to run workers of
    /// it.
    hosts alive_only() const {
        (void)owner("alive_only");
        return hosts(std::make_shared<const detail::hosts_owner>(owner_), executor_);
    }
    /// For options::on().
    std::shared_ptr<const detail::remote_place> place() const {
        (void)owner("place");
        return owner_;
    }

    /// Stops the groups on the hosts, also on those that alive_only() left out, by their ladder; a
    /// start that is under way ends with operation_aborted. Then asks the agents to end, and
    /// completes when the last launcher has ended.
    /// @throws std::system_error  operation_aborted: the call was cancelled
    /// @cancellation any type: stops waiting only.
    /// @thread_safety safe.
    template <completion_token Token = detail::default_token>
    [[nodiscard]] auto leave(Token&& token = Token()) const {
        return detail::begin_call<detail::no_result>(
            detail::about_hosts(owner_ ? owner_->state() : nullptr, detail::leave_hosts,
                                owner_ ? detail::group_executor(executor_)
                                       : detail::group_executor()),
            std::forward<Token>(token));
    }
    /// The older name of the call with a completion token.
    template <class Token>
    auto async_leave(Token&& token) const {
        return leave(std::forward<Token>(token));
    }

private:
    friend class detail::reached_hosts<hosts>;

    hosts(std::shared_ptr<const detail::hosts_owner> owner, asio::any_io_executor executor) noexcept
        : owner_(std::move(owner)), executor_(std::move(executor)) {}

    const detail::hosts_owner& owner(const char* call) const {
        if (!owner_)
            detail::throw_empty_hosts(call);
        return *owner_;
    }

    std::shared_ptr<const detail::hosts_owner> owner_;
    asio::any_io_executor executor_;
};

/// Reaches hosts: an agent, which is this program, is started on each of them. All or none.
/// @param how    slurm(), ssh("a", "b") or launcher(...).hosts("a", "b")
/// @param token  a completion token; without one the call is awaited
/// @throws reach_error  a host was not reached; those that were are let go
/// @throws std::logic_error  slurm() outside an allocation; this program has not called worker_main
/// @throws std::invalid_argument  no host is named, or nodes(n) are more than the allocation has;
///         env() is too large; a launcher's command has other uses for its standard streams
/// @throws std::system_error  the file of this program was removed or replaced
/// @throws spawn_error  this process must not start processes, as spawn says
/// @throws  what the callable of launcher() throws
/// @cancellation any type: the launchers are stopped and reaped, then operation_aborted.
/// @thread_safety safe.
/// @source srun(1), ssh(1)
template <completion_token Token = detail::default_token>
[[nodiscard]] auto reach(const launcher& how, Token&& token = Token()) {
    return detail::start_with<detail::reached_hosts<hosts>>(
        detail::unreached_of(detail::launcher_access::settings(how)), std::forward<Token>(token));
}

/// reach(), on an executor or an execution context that is named: the default of the handlers of
/// all calls of the hosts.
/// @param where  an executor, or an execution context such as an io_context
/// @param how    slurm(), ssh("a", "b") or launcher(...).hosts("a", "b")
/// @param token  the completion token; destroying its handler uncalled lets the hosts go
template <detail::runs_completions Where, completion_token Token = detail::default_token>
[[nodiscard]] auto reach(Where&& where, const launcher& how, Token&& token = Token()) {
    return detail::start_on<detail::reached_hosts<hosts>>(
        detail::executor_at(where), detail::unreached_of(detail::launcher_access::settings(how)),
        std::forward<Token>(token));
}

/// The older name of reach() with an executor and a completion token.
template <class... Args>
auto async_reach(Args&&... args) {
    return cohort::reach(std::forward<Args>(args)...);
}

}  // namespace COHORT_ASIO_NAMESPACE
