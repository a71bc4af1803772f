// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "hosts/connection/windows.hpp"
#include "hosts/link/breach.hpp"
#include "hosts/link/credits.hpp"
#include "hosts/link/frame.hpp"
#include "hosts/link/frame_reader.hpp"
#include "hosts/values/plan_bytes.hpp"
#include "output/streams/group_streams.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace cohort::multihost {

/// The streams of a group's workers at one host, as the origin has them: gives what the agent sends
/// to the group's sinks, gives credit back as they take it, and sends what the workers are fed.
/// Belongs to the output thread.
///
/// What an agent sends without credit, or not in its order, is a breach; so no more is kept of a
/// stream than stream_window and reserve_of().
class origin_streams final : public std::enable_shared_from_this<origin_streams> {
public:
    using say = base::callback<void(frame_kind, std::vector<std::byte>)>;

    /// @param group    of routes at the origin
    /// @param workers  those at the host; messages number them from 0
    /// @param to       sends a message of the group to the agent. Not called after over()
    origin_streams(std::shared_ptr<output::group_streams> group, worker_range workers, say to);

    /// Before the first message, and before the agent is told to start: expects the streams, and
    /// sends what was written to the workers until now.
    void begin();
    /// A message of the kinds data or input_credit. @return how it breaks the protocol
    [[nodiscard]] std::optional<breach> heard(const message& what);
    /// The agent has reported, or its link has ended: nothing more comes or goes. The group's
    /// worker_ended() is called for each of the workers then, and ends what has not ended.
    void over();

private:
    struct stream_state {
        explicit stream_state(std::uint64_t reserve) : credit(stream_window, reserve) {}

        std::shared_ptr<output::far_reader> reader;  // null: nothing of it comes
        receiver_credit credit;
        int attempt = 0;
        bool has_ended = false;  // this attempt
    };

    std::optional<breach> heard_data(const message& what);
    std::optional<breach> heard_answer(const message& what);
    void consumed(std::size_t place, std::uint64_t cost);
    void say_credit(const std::optional<std::size_t>& place, std::uint64_t bytes);

    const std::shared_ptr<output::group_streams> group_;
    const worker_range workers_;
    const bool may_start_again_;
    say to_;  // null: over
    std::vector<stream_state> streams_;
    std::vector<std::shared_ptr<output::far_writer>> feeds_;  // null: it has none
    receiver_credit data_{data_window};
};

}  // namespace cohort::multihost
