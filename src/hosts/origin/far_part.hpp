// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "hosts/link/remote_part.hpp"
#include "hosts/origin/agent_news.hpp"
#include "hosts/origin/backlog.hpp"
#include "hosts/origin/host_link.hpp"
#include "hosts/connection/origin_streams.hpp"
#include "hosts/values/end_bytes.hpp"
#include "hosts/values/plan_bytes.hpp"
#include "loop/runtime/runtime.hpp"

#include <cohort/detail/border.hpp>
#include <cohort/detail/plan.hpp>
#include <cohort/usage.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace cohort::multihost {

/// The workers of one group on one host, as their group sees them. Belongs to the engine's thread,
/// but for heard(). What the agent says is read one message after the other, on the thread that
/// parses what workers wrote; but a failure, which is a number and is urgent, when it comes.
class far_part final : public part_listener, public std::enable_shared_from_this<far_part> {
public:
    /// What becomes of the part.
    class listener {
    public:
        /// All of its workers have started.
        virtual void part_started(const far_part& part, const std::vector<pid_t>& pids) = 0;
        /// In place of part_started(): none of them runs. The index is the group's.
        virtual void part_not_started(const far_part& part, detail::start_failure why) = 0;
        /// A worker has started later than the group. The index is the group's.
        virtual void worker_begun(int index, pid_t pid) = 0;
        /// One of its workers has failed. How that has ended follows, unless the part is lost.
        virtual void worker_has_failed() = 0;
        /// The answer to ask_usage(). The indices are those at the host.
        virtual void used(const far_part& part, const used_resources& said) = 0;
        /// An attempt of a worker has ended. The index is that at the host.
        virtual void worker_ended(const far_part& part, detail::ended_worker end) = 0;
        /// Nothing more will be known of its workers. May come before part_started().
        virtual void part_lost(const far_part& part, const std::string& why, time_point last) = 0;
        /// The last call, once. Nothing more comes of its streams.
        virtual void part_is_over(const far_part& part) = 0;

    protected:
        ~listener() = default;
    };
    struct settings {
        std::uint32_t group = 0;    // its number on the link
        host_part part;          // which workers, and what is theirs alone
        end_reader_place ends;      // but for the times
        std::size_t largest_message = 0;
        duration last_words{0};  // see remote_part
        duration longest_stop{0};  // of the group
        int most_restarts = 0;   // of one worker
    };

    /// @param streams  the group's, with routes at the origin
    far_part(loop::runtime& runtime, listener& of, std::shared_ptr<host_link> link, settings how,
             const std::shared_ptr<output::group_streams>& streams);

    const std::string& host() const noexcept { return link_->name(); }
    const worker_range& workers() const noexcept { return how_.part.workers; }
    bool has_started() const noexcept { return part_.has_started(); }
    /// See host_link.
    const link_loss* told_to_end() const noexcept { return link_->told_to_end(); }
    /// @param index  the group's
    bool has(int index) const noexcept {
        return index >= workers().first && index - workers().first < workers().count;
    }
    /// When a worker had failed of which the end is not known; empty: it is not said.
    std::optional<time_point> failed_at(int index) const {
        const auto found = failed_.find(index - workers().first);
        return found == failed_.end() ? std::nullopt : std::optional(found->second);
    }
    bool has_ended(int index) const {
        return part_.has_ended(static_cast<std::size_t>(index - workers().first));
    }

    /// Once. @param group  kept while messages are read
    /// @param plan   the whole group's
    void begin(std::weak_ptr<const void> group, std::shared_ptr<const detail::spawn_plan> plan);
    /// All hosts have started their workers.
    void open_gate() { happen({part_event::kind::open_gate}); }
    /// A worker of any host has failed, and a stop is to follow: nobody starts any more.
    void hold();
    void stop(const ladder_spans& spans);
    /// @param index  the group's; empty: all workers
    void signal(std::optional<int> index, int signo);
    /// Asks what its live workers use. @return false: no answer will come
    bool ask_usage();
    /// Waits for nothing more.
    void give_up() { lose_agent(too_slow); }

    void heard(message what, const arrival& when) override;
    void link_lost(const link_loss& how) override;
    duration longest_stop() const override { return how_.longest_stop; }

    /// Until it is tried again where there is no thread or no memory.
    static constexpr std::chrono::milliseconds pause{100};

private:
    struct news {
        std::optional<message> said = {};  // empty: the link is lost
        std::size_t size = 0;              // of what was said
        arrival when = {};
        link_loss loss = {};
        std::optional<read_value<failed_worker>> failed = {};  // what was said, if it is that
    };
    /// One message on its way through the thread that reads it.
    using reading = std::optional<agent_news>;
    static constexpr const char* too_slow = "its agent has not reported in time";

    void add(news one);
    void read_next();
    void forget_news();
    void read(news& one);
    void was_read(const std::shared_ptr<reading>& result);
    void take(agent_news& result);
    void take_failure(read_value<failed_worker>& said, const arrival& when);
    void take_beginning(read_value<begun_worker>& said);
    void take_end(read_value<detail::ended_worker>& end);
    void breaks(breach how);
    void happen(const part_event& e);
    void perform(const part_action& what);
    void send_start();
    void lose_agent(const char* why);
    void report_loss();
    void arm_deadline();
    /// Whether what the agent says may wait behind a large message, on the link or here.
    bool is_held_up() const;
    void say(frame_kind kind, std::vector<std::byte> body = {});

    loop::runtime& runtime_;
    listener& listener_;
    const std::shared_ptr<host_link> link_;
    const std::shared_ptr<origin_streams> streams_;  // the output thread's
    settings how_;
    remote_part part_;
    std::weak_ptr<const void> group_;
    std::shared_ptr<const detail::spawn_plan> plan_;  // until it is sent
    struct {
        std::deque<news> queue;
        bool is_reading = false;
        int attempts = 0;               // to read the first one
        agent_news* current = nullptr;  // while it is taken
    } in_;
    backlog unread_;  // what is in the queue, or on its way to it
    link_loss loss_;
    std::map<int, time_point> failed_;  // by the index at the host
    struct {
        std::optional<time_point> at;  // as the machine has it
        std::optional<loop::timer_id> timer;
        std::uint64_t moved = 0;  // by the link, when it was set
    } deadline_;
};

}  // namespace cohort::multihost
