// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/callback.hpp"
#include "loop/engine/engine.hpp"
#include "output/streams/group_streams.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace cohort::groups {

/// The end of what one worker prints: waits until its streams are read and written, but not for an
/// output thread that does not answer. Belongs to the engine's thread.
class printed_end : public std::enable_shared_from_this<printed_end> {
public:
    /// @param streams        those of its group
    /// @param flush_timeout  how long targets may take to write
    printed_end(loop::engine& loop, std::shared_ptr<output::group_streams> streams, int index,
                std::chrono::steady_clock::duration flush_timeout);

    /// Ends the streams of the worker. Call it when its process group has been killed, so that
    /// nothing of that writes more.
    void begin();
    /// Calls `then` once, with what the worker has printed, when that has ended; at once if it has.
    /// And `over`, when the output thread has no part of the streams any more: just before `then`,
    /// or later where `then` could not wait. Neither if begin() is not called.
    void await(base::callback<void(output::stream_end)> then, base::callback<void()> over);

private:
    void limit(int steps);
    void streams_ended(const std::string& note);
    void deliver();

    loop::engine& loop_;
    const std::shared_ptr<output::group_streams> streams_;
    const int index_;
    const std::chrono::steady_clock::duration flush_timeout_;
    std::optional<output::stream_end> read_;  // until it is delivered
    std::optional<loop::timer_id> limit_;
    int extensions_ = 0;      // of the limit
    bool has_ended_ = false;  // `then` waits no longer
    bool is_over_ = false;
    base::callback<void(output::stream_end)> then_;  // empty: nobody waits yet, or it was called
    base::callback<void()> over_;                    // the same
};

}  // namespace cohort::groups
