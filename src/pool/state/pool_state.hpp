// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "group/border/worker_source.hpp"
#include "loop/runtime/runtime.hpp"
#include "pool/dispatch/dispatcher.hpp"
#include "pool/link/memory_looks.hpp"
#include "pool/link/worker_link.hpp"
#include "pool/state/ended_call.hpp"
#include "pool/state/pool_requests.hpp"
#include "pool/state/shown_pool.hpp"

#include <cohort/detail/pool_border.hpp>

#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

namespace cohort::detail::inline v0_1 {

/// One pool. All that happens to it becomes an event for its dispatcher, on the engine's thread;
/// the dispatcher answers with orders, which the pool performs. Keeps itself alive while it has
/// workers.
class pool_state final : private pools::worker_link::listener,
                         public std::enable_shared_from_this<pool_state> {
public:
    /// What is the same for all calls.
    struct call_settings {
        std::uint64_t room = 0;     // so many calls may wait
        call_times limits;          // of calls that have none of their own
        bool by_name = false;       // functions are found by their names
        queue_message initializer;  // the first message to each worker
    };
    pool_state(std::shared_ptr<const worker_source> workers, const pools::rules& rules,
               call_settings calls);
    ~pool_state();
    pool_state(const pool_state&) = delete;
    pool_state& operator=(const pool_state&) = delete;

    loop::runtime& runtime() const noexcept { return runtime_; }
    pools::shown_pool& shown() noexcept { return shown_; }
    const pools::shown_pool& shown() const noexcept { return shown_; }
    const call_settings& settings() const noexcept { return settings_; }
    /// What the pool was made of, before any resize().
    const worker_source& first_workers() const noexcept { return *first_workers_; }

    /// Empties the files of these workers that no worker of the pool has written to.
    void empty_files(const worker_source& of) {
        const std::lock_guard lock(emptied_.mutex);
        of.empty_files(emptied_.paths);
    }

    // On the engine's thread only:

    /// A call on its way to a worker.
    struct call {
        receiver to;
        std::shared_ptr<share::outgoing> packet;
        const char* function = nullptr;
        call_times limits;
        bool waits = true;  // for a worker
    };

    void begin(receiver to);
    void submit(call submitted);
    void ask(pool_wish wish, std::optional<time_point> until, receiver to);
    void resize(std::shared_ptr<const worker_source> workers, receiver to);
    void cancel(operation_id id, bool stops_worker);
    void release();

private:
    using worker_id = pools::worker_id;

    void is_ready(worker_id worker) override;
    void answered(worker_id worker, const pools::frame_name& what, queue_message message) override;
    void not_taken(worker_id worker, pools::call_id call) override;
    void not_sent(worker_id worker, std::exception_ptr why) override;
    void broke(worker_id worker) override;
    void ended(worker_id worker) override;

    time_point now() const { return std::chrono::steady_clock::now(); }
    void go_on();
    void perform(const pools::order& order);
    void start(worker_id worker, int slot);
    void send(const pools::order& order);
    void complete(const pools::order& order);
    void deliver(call of, std::shared_ptr<pools::ended_call> how);
    void name_frames(call of, std::shared_ptr<pools::ended_call> how);
    void look_at_start();
    void resize_now(std::shared_ptr<const worker_source> workers, operation_id id);
    void time_has_passed();
    void set_timer();
    pools::ended_call& ending_of(worker_id worker);
    std::shared_ptr<pools::ended_call> broken() const;
    void note_idle(worker_id worker);
    void show(worker_id worker, worker_state state, const char* function = nullptr);

    loop::runtime& runtime_;
    std::shared_ptr<const worker_source> workers_;
    std::shared_ptr<const worker_source> first_workers_;
    call_settings settings_;
    pools::shown_pool shown_;
    pools::dispatcher dispatcher_;
    pools::memory_looks memory_;
    std::map<worker_id, std::shared_ptr<pools::worker_link>> links_;
    std::map<pools::call_id, call> calls_;  // not ended; by the ids of their operations
    // What the present events tell of the ends of calls, by the workers that had them.
    std::map<worker_id, std::shared_ptr<pools::ended_call>> endings_;
    pools::pool_requests requests_;
    struct {
        std::optional<receiver> to;  // until it is completed
        int at_least = 0;            // workers are wanted
        bool cancelled = false;
    } start_;
    struct {
        std::shared_ptr<pool_state> self;  // keeps this alive while it has workers
        std::optional<loop::timer_id> timer;
        bool goes_on = false;  // go_on() runs
    } life_;
    std::shared_ptr<const pools::ended_call> last_death_;  // of a worker that was not ready
    struct {
        std::mutex mutex;
        std::set<std::string> paths;
    } emptied_;
};

}  // namespace cohort::detail::inline v0_1
