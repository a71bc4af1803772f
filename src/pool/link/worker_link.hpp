// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"
#include "group/border/worker_source.hpp"
#include "pool/dispatch/dispatcher.hpp"
#include "pool/wire/frame.hpp"
#include "share/channel/channel.hpp"

#include <cohort/detail/border.hpp>
#include <cohort/detail/queue_message.hpp>

#include <chrono>
#include <exception>
#include <memory>
#include <optional>

#include <sys/types.h>

namespace cohort::pools {

/// One worker as its pool sees it: a group of one, and a socket. Belongs to the engine's thread.
class worker_link final : public detail::completion_sink,
                          public std::enable_shared_from_this<worker_link> {
public:
    /// What the pool hears. It lives as long as it keeps the link.
    class listener {
    public:
        virtual void is_ready(worker_id worker) = 0;
        /// The worker has answered its call. `message` is as it came.
        virtual void answered(worker_id worker, const frame_name& what,
                              detail::queue_message message) = 0;
        /// The worker has closed its end, so that nothing of the call can have reached it.
        virtual void not_taken(worker_id worker, call_id call) = 0;
        /// The kernel refuses to send the call, or has dropped its answer.
        virtual void not_sent(worker_id worker, std::exception_ptr why) = 0;
        /// The worker has sent something else, or has closed its end. It was killed.
        virtual void broke(worker_id worker) = 0;
        /// It is reaped, or could not be started. The last call.
        virtual void ended(worker_id worker) = 0;

    protected:
        ~listener() = default;
    };

    worker_link(loop::runtime& runtime, listener& pool, worker_id id, int slot) noexcept
        : runtime_(runtime), pool_(pool), id_(id), slot_(slot) {}

    /// What a worker needs before it can start.
    struct prepared {
        detail::group_ref group;
        std::shared_ptr<base::unique_fd> socket;
        std::exception_ptr error;  // set: why there is none
    };
    /// Makes that for a worker of this slot. On a thread in the background, because the call of the
    /// initializer may be large.
    /// @param initializer  the first message to the worker; without bytes: there is no initializer
    static prepared prepare(const detail::worker_source& source, int slot,
                            const detail::queue_message& initializer) noexcept;
    /// Starts the worker.
    void begin(prepared with) noexcept;

    void send(call_id call, std::shared_ptr<share::outgoing> packet);
    /// Lets the worker end when it has done its task.
    void retire();
    /// Stop signal, SIGKILL.
    void stop();
    /// Takes an answer that is there now.
    void look();

    worker_id id() const noexcept { return id_; }
    int slot() const noexcept { return slot_; }
    /// 0: it has not started yet.
    pid_t pid() const noexcept { return pid_; }

    /// How it ended.
    struct end {
        std::shared_ptr<const detail::group_end> of_group;         // null: it has not started
        std::shared_ptr<const detail::start_failure> not_started;  // set: why it has not
        std::exception_ptr error;                                  // set: the same
        bool broke = false;  // it was killed because it broke the protocol
    };
    const end& how_ended() const noexcept { return end_; }

    detail::delivery complete(detail::operation_id id,
                              const detail::completion& result) noexcept override;

private:
    enum operation : detail::operation_id { start_operation = 1, end_operation = 2 };
    enum class read { message, nothing, over, later };

    void start();
    void started();
    void finish();
    void watch();
    void readable();
    read receive();
    void note_lost(std::exception_ptr why);
    void note_not_taken();
    void hear(detail::queue_message message);
    void is_closed();
    void kill();
    void send_now();
    void after(std::chrono::milliseconds pause, void (worker_link::*then)());
    void await_ending(void (worker_link::*otherwise)());
    void end_patience();

    loop::runtime& runtime_;
    listener& pool_;
    const worker_id id_;
    const int slot_;
    detail::group_ref group_;
    std::shared_ptr<base::unique_fd> socket_;  // null: at the end
    pid_t pid_ = 0;
    struct {
        std::optional<call_id> call;              // that it has
        std::shared_ptr<share::outgoing> packet;  // of that call, until it is sent
        std::chrono::milliseconds pause{1};       // before the next attempt to send it
    } sent_;
    struct {
        bool is_ready = false;
        bool is_stopped = false;  // stop() was called
        bool is_retired = false;
        bool has_ended = false;
    } is_;
    std::optional<loop::timer_id> patience_;  // with a worker that is to end
    end end_;
};

}  // namespace cohort::pools
