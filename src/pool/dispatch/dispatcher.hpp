// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "pool/dispatch/call_list.hpp"
#include "pool/dispatch/start_damper.hpp"

#include <cohort/pool_stats.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <vector>

namespace cohort::pools {

/// The number of a worker. Each start has another one; no slot has the same worker again.
using worker_id = std::uint64_t;
/// The number of a call of recycle(), resize(), drain() or stop().
using request_id = std::uint64_t;

struct rules {
    int size = 1;
    int at_least = 1;
    duration idle = std::chrono::seconds(60);
    std::uint64_t tasks_per_worker = 0;   // 0: no limit
    std::uint64_t memory_per_worker = 0;  // bytes; 0: no limit
    int start_attempts = 3;
    int starts_at_once = 2;
    duration ready_within = std::chrono::seconds(60);
    duration drain_period{};
    bool overlap = true;
    duration first_pause = std::chrono::milliseconds(10);
    duration longest_pause = std::chrono::seconds(1);
};

/// How a call ends.
enum class call_end {
    answered,   // with what its worker has sent: a value, or an exception
    dropped,    // its worker has answered, but nobody waits any more: nothing is to be told
    died,       // its worker has died
    timed_out,  // its worker was stopped, because the call ran for too long
    not_begun,  // it has waited for too long
    aborted,    // it was cancelled, or the pool is stopped
    broken,     // no worker can be started
};

/// What the pool must do, in this order when there are several.
struct order {
    enum class kind {
        start,     // start this worker in its slot
        send,      // send it this call
        stop,      // stop it: the stop signal, then SIGKILL
        retire,    // let it end: it gets no more calls
        complete,  // this call ends so
        grant,     // this request is done
        refuse,    // this request can't be done, because no worker becomes ready
    };
    kind what;
    worker_id worker = 0;  // of a call that ends: the one that had it; 0: none
    int slot = -1;
    call_id call = 0;
    call_end how = call_end::answered;
    request_id request = 0;
};

/// How many of what a pool had until now, see pool_stats.
struct counts {
    std::uint64_t done = 0;
    std::uint64_t failed = 0;
    std::uint64_t lost = 0;
    std::uint64_t replaced = 0;
    std::uint64_t recycled = 0;
    duration waited{};
    duration longest_wait{};
    duration ran{};
    duration longest_run{};
};

/// Which worker gets which call, and which workers there are: no clock, no system calls, no
/// processes. Its user tells it what happens, then does the orders.
///
/// Rules of its user: each start is answered by ready() and later died(), or by died() alone. A
/// worker that was sent a call answers by finished() or not_taken(), or dies. died() comes last,
/// once for each worker, when it is reaped.
class dispatcher {
public:
    dispatcher(const rules& r, std::uint32_t seed);

    /// Starts the first workers.
    void begin(time_point now);

    // Calls:

    void submit(call_id call, std::optional<duration> wait, std::optional<duration> run,
                time_point now);
    /// @param stops_worker  a call that runs is stopped; else only its answer is dropped
    void cancel(call_id call, bool stops_worker, time_point now);

    // Workers:

    void ready(worker_id worker, time_point now);
    /// It has answered its call.
    void finished(worker_id worker, bool failed, time_point now);
    /// It could not be sent its call, not even a part of it: another one gets the call.
    void not_taken(worker_id worker, time_point now);
    /// How much memory it has added since it was ready, in bytes.
    void measured(worker_id worker, std::uint64_t added, time_point now);
    /// It does not do what a worker of a pool does, and was killed.
    void broke(worker_id worker, time_point now);
    void died(worker_id worker, time_point now);

    // The pool:

    void recycle(request_id request, time_point now);
    void resize(request_id request, int size, time_point now);
    void drain(request_id request, time_point now);
    void stop(request_id request, time_point now);
    /// Stops at once: every call is aborted now.
    void drop(time_point now);

    /// To be called at deadline().
    void on_time(time_point now);
    /// Those whose time is up: if they have answered, say so before on_time().
    std::vector<worker_id> late(time_point now) const;
    std::optional<time_point> deadline() const;

    /// What is to be done since the last call.
    std::vector<order> take_orders();

    /// Whether calls are taken.
    bool is_open() const noexcept { return phase_ == phase::open; }
    bool is_broken() const noexcept { return is_broken_; }
    int live() const noexcept { return static_cast<int>(workers_.size()); }
    int idle() const noexcept { return static_cast<int>(idle_.size()); }
    /// How many workers take calls.
    int ready() const noexcept;
    bool was_ready(worker_id worker) const noexcept;
    /// How many workers in a row have died before they were ready.
    int deaths() const noexcept { return starts_.deaths; }
    /// Whether these were so many that the pool was broken, if no worker was ready.
    bool has_failed_to_start() const noexcept { return starts_.have_failed; }
    std::size_t waiting() const noexcept { return calls_.size(); }
    /// How many workers are wanted that wait for the end of a pause.
    int throttled(time_point now) const;
    const counts& counted() const noexcept { return counts_; }

private:
    enum class phase { open, draining, stopping };
    struct worker {
        int slot = -1;
        worker_state state = worker_state::starting;
        time_point since;
        std::optional<time_point> deadline;  // of its start, or of its call
        std::optional<call_id> call;
        call_list::waiting_call how;   // the call, if it must go back
        std::optional<call_end> fate;  // of its call, when it is gone
        std::uint64_t tasks = 0;
        std::uint64_t most_tasks = 0;   // 0: no limit
        std::uint64_t most_memory = 0;  // 0: no limit
        bool was_ready = false;
        bool is_due = false;   // to be recycled
        bool retires = false;  // after its call
        bool is_ours = false;  // stopped or let go by the pool: its death is no failure
    };
    using workers = std::map<worker_id, worker>;

    void go_on(time_point now);
    void send_calls(time_point now);
    void end_calls(call_end how);
    void start_some(time_point now);
    bool has_room_for_start() const;
    bool may_start(time_point now) const;
    bool is_used(int slot) const;
    bool renews() const noexcept;
    std::optional<worker_id> next_due() const;
    bool is_extra(worker_id id) const noexcept;
    int wanted() const;
    std::optional<int> free_slot() const;
    worker_id start(int slot, time_point now);
    void stop_worker(worker_id id, worker& of, bool is_ours, std::optional<call_end> fate);
    void retire(worker_id id, worker& of);
    void let_go(worker_id id, worker& of);
    void shrink(time_point now);
    int staying() const;
    void recycle_next(time_point now);
    void note_end_in_recycling(worker_id id, const worker& of);
    void note_death_before_ready();
    void grant_requests();
    void refuse_recycling();
    void complete(call_id call, call_end how, worker_id worker = 0);
    std::uint64_t jittered(std::uint64_t limit);
    double chance() { return std::uniform_real_distribution<>()(random_); }

    rules rules_;
    call_list calls_;
    workers workers_;
    std::vector<worker_id> idle_;  // the one that was used last is the last
    start_damper damper_;
    struct {
        std::optional<worker_id> old;        // that one is being replaced
        std::optional<worker_id> successor;  // by that one
        std::optional<int> slot;             // without overlap: that one is to be started there
    } recycling_;
    struct {
        bool have_failed = false;  // since a worker was ready
        int deaths = 0;            // in a row, when that was so last
    } starts_;
    std::set<int> lost_slots_;  // their workers died: the next start there replaces them
    struct request {
        request_id id;
        bool renews;                             // the workers are to be replaced
        bool waits_for_all;                      // every worker must be gone, or
        std::set<worker_id> waits_for;           // these
    };
    std::vector<request> requests_;
    phase phase_ = phase::open;
    bool is_broken_ = false;
    std::optional<time_point> drain_until_;
    worker_id last_ = 0;
    counts counts_;
    std::vector<order> orders_;
    std::minstd_rand random_;
};

}  // namespace cohort::pools
