// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "hosts/launchers/launch_plan.hpp"
#include "hosts/origin/host_link.hpp"
#include "hosts/origin/query.hpp"
#include "loop/runtime/runtime.hpp"
#include "loop/waits/waiters.hpp"

#include <cohort/detail/hosts_border.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace cohort::detail::inline v0_1 {

/// What the agents are told. @throws std::invalid_argument  that is too much
multihost::welcome welcome_of(const multihost::launch_plan& plan);

/// Hosts that were reached together. Belongs to the engine's thread, but for what it shows. Keeps
/// itself alive from the start of the first launcher to the end of the last one.
class hosts_state final : public loop::live_group,
                          private multihost::host_link::listener,
                          public std::enable_shared_from_this<hosts_state> {
public:
    /// Starts nothing. @throws what make_group() throws
    hosts_state(multihost::origin from, multihost::launch_plan plan);

    loop::runtime& runtime() const noexcept { return from_.services.runtime(); }
    /// Once they are reached.
    const std::vector<std::string>& names() const noexcept { return plan_.hosts; }
    int port() const noexcept { return plan_.port; }
    std::chrono::steady_clock::duration host_timeout() const noexcept { return plan_.host_timeout; }
    /// Once they are reached.
    const std::vector<std::shared_ptr<multihost::host_link>>& links() const noexcept {
        return links_;
    }

    // On any thread:

    /// @param among  these hosts
    std::vector<std::string> lost(const std::vector<int>& among) const;
    bool is_alive(int host) const;
    /// A number for a group on their links.
    std::uint32_t new_group() noexcept { return ++last_group_; }

    // On the engine's thread only:

    void begin(receiver to);
    void leave(receiver to);
    void cancel(operation_id id);
    void release();
    /// A group with workers on them has begun: they are not left before group_ended().
    void group_began(std::weak_ptr<group_state> group);
    void group_ended(const group_state& group);
    /// At exit() the agents are to end their groups before the launchers end.
    void stop_within(std::chrono::steady_clock::duration limit) override;

private:
    void reached(int host) override;
    void not_reached(int host, multihost::unreached why) override;
    void lost(int host, std::string why) override;
    void gone(int host) override;

    void make_links();
    void find_names();
    void named(const multihost::query::answer& found);
    void fail(std::error_code code, const std::string& text, const std::string& host,
              const std::string& stage, const std::string& words);
    void fail(std::exception_ptr why);
    int starts_at_once() const noexcept;
    void start_some();
    void time_is_up();
    void let_all_go();
    void complete_start(completion how);
    void look_at_end();

    const multihost::origin from_;
    multihost::launch_plan plan_;
    std::shared_ptr<multihost::query> names_;      // while it runs
    std::shared_ptr<const multihost::hello> own_;  // what their agents must say
    std::vector<std::shared_ptr<multihost::host_link>> links_;
    struct {
        std::optional<receiver> to;  // until it is completed
        std::exception_ptr failure;
        bool is_cancelled = false;
        int begun = 0;
        int done = 0;  // reached or not
        int reached = 0;
        std::optional<loop::timer_id> limit;
    } start_;
    struct {
        bool is_wished = false;  // once the groups have ended
        bool has_begun = false;
        int gone = 0;
    } leave_;
    loop::waiters leavers_;
    std::atomic<std::uint32_t> last_group_ = 0;
    std::map<const group_state*, std::weak_ptr<group_state>> groups_;  // that live
    loop::stop_spans::entry longest_stop_;
    std::shared_ptr<hosts_state> self_;  // keeps this alive while it has launchers
    struct {
        mutable std::mutex mutex;
        std::vector<bool> is_alive;
        std::vector<std::pair<int, std::string>> lost;  // in the order of their losses
    } shown_;
};

}  // namespace cohort::detail::inline v0_1
