// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/callback.hpp"
#include "group/lifecycle/machine.hpp"
#include "group/state/snapshot.hpp"
#include "loop/runtime/runtime.hpp"
#include "loop/waits/waiters.hpp"
#include "output/streams/group_streams.hpp"

#include <cohort/detail/border.hpp>

#include <memory>
#include <optional>
#include <utility>

namespace cohort::groups {

/// When the operation that starts a group completes, unless the start fails or is stopped.
enum class start_completes { when_started, at_end };

}  // namespace cohort::groups

namespace cohort::detail::inline v0_1 {

/// One group, as the border sees it: what operations ask of it, and what other threads may read.
class group_state {
public:
    virtual ~group_state() = default;
    group_state(const group_state&) = delete;
    group_state& operator=(const group_state&) = delete;

    loop::runtime& runtime() const noexcept { return runtime_; }
    const groups::snapshot& snapshot() const noexcept { return snapshot_; }
    output::group_streams& streams() const noexcept { return *streams_; }

    /// Starts the workers. Once, by the initiating call, on any thread.
    virtual void start(receiver to, groups::start_completes when) = 0;

    // On the engine's thread only:

    /// What a group tells before it is asked.
    struct news {
        /// A worker has failed for good. Its outcome is not yet complete.
        base::callback<void(int index)> failed;
        /// A worker has started that did not start with the group.
        base::callback<void(int index, pid_t pid)> started;
    };
    /// Before the start. @param to  all of it is called
    void tell(news to) { news_ = std::move(to); }
    void await_end(receiver to, std::optional<time_point> until) {
        if (auto end = snapshot_.end()) {
            completion done;
            done.end = std::move(end);
            runtime_.deliver(to, std::move(done));
        } else {
            end_waiters_.add(std::move(to), until);
        }
    }
    virtual void await_next(receiver to, std::optional<time_point> until) = 0;
    virtual void await_usage(receiver to) = 0;
    /// The start of the whole group that this is a part of has failed: nothing of logs() stays.
    virtual void forget_logs() = 0;
    virtual void cancel(operation_id id, cancel_mode mode) = 0;
    /// A worker of another part of the same group has failed: a stop is to follow, so nobody is
    /// started any more.
    virtual void failed_elsewhere() = 0;
    /// With no step longer than `longest` says.
    virtual void stop(const groups::step_spans& longest) = 0;
    virtual void signal(int signo) = 0;
    /// To one worker. Does nothing if it has ended.
    virtual void signal(int index, int signo) = 0;

protected:
    group_state(loop::runtime& runtime, int size, std::shared_ptr<output::group_streams> streams)
        : runtime_(runtime), snapshot_(size), streams_(std::move(streams)),
          end_waiters_(runtime, runtime.loop()) {}

    void tell_failed(int index) const {
        if (news_.failed)
            news_.failed(index);
    }
    void tell_started(int index, pid_t pid) const {
        if (news_.started)
            news_.started(index, pid);
    }

    loop::runtime& runtime_;
    groups::snapshot snapshot_;
    std::shared_ptr<output::group_streams> streams_;
    loop::waiters end_waiters_;
    news news_;  // empty: nobody hears them
};

}  // namespace cohort::detail::inline v0_1
