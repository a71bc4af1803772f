// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/callback.hpp"
#include "hosts/connection/agent_streams.hpp"
#include "hosts/connection/connection.hpp"
#include "hosts/link/bodies.hpp"
#include "hosts/link/frame.hpp"
#include "hosts/link/frame_reader.hpp"
#include "hosts/values/messages.hpp"
#include "loop/runtime/runtime.hpp"

#include <cohort/detail/border.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace cohort::multihost {

/// The part of a group that runs at this host: an ordinary group, which does what the origin says
/// and tells the origin what becomes of its workers. Belongs to the engine's thread, but for what
/// the link says of streams.
class agent_group final : public detail::completion_sink,
                          public std::enable_shared_from_this<agent_group> {
public:
    /// @param link    of the output thread
    /// @param number  of the group
    /// @param told    called on the output thread after the last report
    agent_group(loop::runtime& runtime, std::shared_ptr<connection> link, std::uint32_t number,
                base::callback<void()> told)
        : runtime_(runtime), link_(std::move(link)), number_(number), told_(std::move(told)) {}

    /// Starts the workers. Once, before the other calls.
    /// @param plan  what write_plan() has written
    void begin(std::vector<std::byte> plan);
    /// All hosts have started their workers.
    void open_gate() noexcept { is_open_ = true; }
    /// Starts nobody any more, and goes on.
    void hold();
    /// With steps that are no longer than these. Before open_gate() the start has failed on another
    /// host.
    void stop_by_origin(const ladder_spans& spans);
    /// Because this agent ends.
    void stop(const ladder_spans& spans);
    /// @param index  of the part; empty: all workers
    void signal(std::optional<int> index, int signo);

    /// Tells what the live workers use.
    void usage();

    // On the output thread:

    /// A message of the kinds data_credit or input.
    void heard(message what);
    bool is_told() const noexcept { return output_.is_told; }
    /// The origin hears nothing more of the group.
    void close();

    detail::delivery complete(detail::operation_id id,
                              const detail::completion& result) noexcept override;

private:
    enum operation : detail::operation_id {
        start_operation = 1,
        next_operation = 2,
        usage_operation = 3
    };
    struct making;

    void made(making& result);
    void fail(const detail::start_failure& why);
    void tell_start();
    void has_failed(int index);
    void tell_failure(const failed_worker& which);
    void tell_usage(const detail::completion& result);
    void ask_next();
    void tell_end(std::shared_ptr<const detail::ended_worker> end);
    void write_end_of(std::shared_ptr<const detail::ended_worker> end);
    void open_streams(std::shared_ptr<agent_streams> streams);
    void tell_all_sent();
    void tell_last(frame_kind kind, std::vector<std::byte> body = {});
    void say(frame_kind kind, std::vector<std::byte> body = {});

    loop::runtime& runtime_;
    const std::shared_ptr<connection> link_;
    const std::uint32_t number_;
    const base::callback<void()> told_;
    detail::group_ref group_;              // null: it is being made, or could not be
    std::optional<ladder_spans> stopped_;  // before it was made
    std::optional<time_point> stopped_at_;
    bool has_started_ = false;
    std::vector<failed_worker> failed_in_start_;
    bool is_open_ = false;
    struct {
        std::shared_ptr<agent_streams> streams;  // null: the group is being made, or is closed
        std::deque<message> early;               // before it was made
        std::size_t early_bytes = 0;
        bool is_told = false;  // the last report was made
        bool is_closed = false;
    } output_;  // the output thread's
};

}  // namespace cohort::multihost
