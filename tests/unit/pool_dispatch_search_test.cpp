// SPDX-License-Identifier: BSL-1.0
// Every state that a small pool's dispatcher can come to by its public calls. Beside it runs a
// ledger, which keeps what has really happened, and after each call the facts below must hold.
//
// Times are nanoseconds, so small that chance can't shorten a pause. Two states are the same if the
// ledger says the same of them, but for the numbers of workers and calls, what was counted, and how
// far off the next times are: only their order counts. A search ends, because each history has only
// so many calls, troubles and wishes.
#include "pool/dispatch/dispatcher.hpp"
#include "sanitizers.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace pool_dispatch_search_test {

using namespace cohort::pools;
using namespace std::chrono_literals;
using cohort::worker_state;
using cohort::test::how_many;

namespace {

namespace facts {

// Calls.
constexpr auto has_one_worker = "a call is given to one worker, and only while it waits";
constexpr auto in_turn = "calls are given in their order of submission";
constexpr auto last_used = "the idle worker that was used last gets the call";
constexpr auto only_idle = "only an idle worker that stays gets a call";
constexpr auto none_waits = "no call waits while a fitting worker is idle";
constexpr auto ends_once = "each call ends once, and an end that nobody waits for is not told";
constexpr auto right_end =
    "a call ends as what has happened says, and names the worker that had it";
constexpr auto end_is_told = "a call whose end has come is told so at once";
constexpr auto waits_in_time = "a call is not begun only if its time to wait is up";
constexpr auto none_is_idle = "a call is not begun only if no fitting worker is idle";
constexpr auto not_too_long = "no call waits for longer than it may";
constexpr auto none_is_lost = "no call is lost: each waits, is given, or has an end";
// Workers.
constexpr auto is_known = "an order is for a worker that lives, and names its slot";
constexpr auto new_worker = "each worker that starts has a number of its own";
constexpr auto slot_is_free = "a worker starts in a slot of the pool that is free";
constexpr auto lost_slot_first = "the replacement of a worker that died gets its slot";
constexpr auto start_has_reason =
    "a worker starts for at_least, for a call that waits, or as a successor";
constexpr auto start_is_made = "a worker that is wanted and may start has been started";
constexpr auto not_in_pause = "no worker starts in a pause, or while the pool is broken";
constexpr auto few_starts = "no more workers start at a time than starts_at_once says";
constexpr auto within_size = "no more workers live than the pool's size, and one successor";
constexpr auto stop_has_reason = "a worker is stopped only for a reason";
constexpr auto stop_is_told = "a worker whose time is up is stopped";
constexpr auto retire_has_reason = "a worker retires only when it is idle, and for a reason";
constexpr auto retire_is_told = "an idle worker that has to leave is told so at once";
constexpr auto shrinks = "a worker beyond at_least that was idle for long enough is let go";
// Renewal.
constexpr auto renewal_goes_on = "a worker that is to be renewed is renewed as soon as that may be";
constexpr auto no_task_more =
    "without overlap a worker that can be renewed now gets no task beyond its limit";
// Requests.
constexpr auto right_grant = "a request is granted when what it waits for is gone, and only then";
constexpr auto right_refusal = "recycle() is refused when too many starts in a row have failed";
// What it tells.
constexpr auto tells_workers = "it counts the live, idle and ready workers";
constexpr auto tells_waiting = "it counts the calls that wait";
constexpr auto tells_phase = "it says whether it takes calls and whether it is broken";
constexpr auto tells_deaths = "it says how many starts in a row had failed";
constexpr auto tells_throttled = "it says how many workers wait for the end of a pause";
constexpr auto tells_counts = "it counts what has been done, lost, replaced and renewed";
constexpr auto tells_times = "it sums up how long calls have waited and run";
constexpr auto tells_late = "late() names those whose time is up, and nobody else";
constexpr auto tells_deadline = "deadline() is when something is to be done next";
constexpr auto nothing_early = "nothing is done before deadline()";
constexpr auto ignores = "an event that is late or can't be changes nothing";
constexpr auto throws_nothing = "no call throws";

}  // namespace facts

/// A list that is copied fast.
template <class T>
class few {
public:
    static constexpr std::size_t most = 6;
    T* begin() noexcept { return all_.data(); }
    T* end() noexcept { return all_.data() + size_; }
    const T* begin() const noexcept { return all_.data(); }
    const T* end() const noexcept { return all_.data() + size_; }
    int size() const noexcept { return static_cast<int>(size_); }
    bool empty() const noexcept { return size_ == 0; }
    void push(const T& value) { all_.at(size_++) = value; }
    void erase(T* which) {
        std::move(which + 1, end(), which);
        --size_;
    }
    void clear() noexcept { size_ = 0; }

private:
    std::array<T, most> all_{};
    std::size_t size_ = 0;
};

struct limits {
    std::optional<duration> wait;
    std::optional<duration> run;
};

enum class what {
    submit,
    cancel,   // and stop its worker
    give_up,  // cancel, but let its worker go on
    ready,
    finish,
    fail,  // the task has thrown
    not_taken,
    grow,  // beyond memory_per_worker
    broke,
    die,
    time,   // until deadline() or the end of a pause, and on_time()
    clock,  // the same, but other events come before on_time()
    recycle,
    resize,
    drain,
    stop,
    drop,
};
constexpr const char* names[] = {"submit",    "cancel", "give_up", "ready", "finish", "fail",
                                 "not_taken", "grow",   "broke",   "die",   "time",   "clock",
                                 "recycle",   "resize", "drain",   "stop",  "drop"};

struct event {
    what kind = what::time;
    std::uint64_t of = 0;  // the worker, the call, the size or the kind of limits
};

struct setting {
    rules how;
    std::set<what> events;
    std::vector<limits> calls_have = {{}};
    std::vector<int> sizes = {};  // that resize() asks for
    int calls = 0;                // at most so many
    int troubles = 0;             // deaths that nobody asked for, and calls that were not taken
    int wishes = 0;               // of recycle() to drop()
    bool strange = false;         // events that can't be come between all others
};

/// What has happened, and what must follow from it.
class ledger {
public:
    explicit ledger(const setting& s)
        : size(s.how.size), at_least(s.how.at_least), s_(&s), how_(&s.how) {}

    const char* broken_fact = nullptr;

    void begin(dispatcher& d) {
        d.begin(now);
        settle(d);
    }
    std::vector<event> possible(const dispatcher& d) const;
    void happen(dispatcher& d, const event& e);
    std::string key() const;

private:
    struct call_entry {
        call_id id = 0;
        time_point since;
        std::optional<time_point> until;
        std::optional<duration> run;
    };
    struct worker_entry {
        worker_id id = 0;
        int slot = -1;
        worker_state state = worker_state::starting;
        time_point since;
        std::optional<time_point> deadline;
        call_entry call;              // id 0: none
        bool is_dropped = false;      // the call: its end was told
        std::optional<call_end> end;  // of the call, when the worker is gone
        std::uint64_t tasks = 0;
        std::uint64_t turn = 0;  // higher: idle for a shorter time
        bool was_ready = false;
        bool is_due = false;  // to be renewed
        bool leaves = false;
        bool is_ours = false;
        bool had_dropped = false;  // once, a call that was given up

        bool is_idle() const { return state == worker_state::idle; }
        bool is_starting() const { return state == worker_state::starting; }
        bool is_running() const { return state == worker_state::running; }
        bool is_stopping() const { return state == worker_state::stopping; }
    };
    struct expected_end {
        call_id call = 0;
        call_end how{};
        worker_id worker = 0;
    };
    struct expected_stop {
        worker_id worker = 0;
        bool is_ours = false;
        std::optional<call_end> end;
    };
    struct request_entry {
        request_id id;
        bool renews = false;
        bool waits_for_all = false;
        bool is_refused = false;
        what asked = what::recycle;
        few<worker_id> waits_for = {};
    };
    enum class phase { open, draining, stopping };

    void demand(bool holds, const char* fact) {
        if (!holds && !broken_fact)
            broken_fact = fact;
    }
    bool may(what kind) const { return s_->events.contains(kind); }

    worker_entry* find(worker_id id) {
        const auto found = std::ranges::find(workers, id, &worker_entry::id);
        return found == workers.end() ? nullptr : found;
    }
    int number_of(auto which) const {
        return static_cast<int>(std::ranges::count_if(workers, which));
    }

    // --- what the pool is about ---

    /// Nobody is needed any more who has nothing to do.
    bool is_over() const {
        return is == phase::stopping || (is == phase::draining && waiting.empty());
    }
    /// Whether it is started beside the worker that it replaces.
    bool is_extra(const worker_entry& w) const { return how_->overlap && w.id == successor; }
    int starting() const {
        return number_of([](const auto& w) { return w.is_starting(); });
    }
    bool may_start() const {
        return !broken && next_start <= now && starting() < how_->starts_at_once;
    }
    int staying() const {
        return number_of(
            [&](const auto& w) { return !w.is_stopping() && !w.leaves && !is_extra(w); });
    }
    /// Slots that count; a worker that is replaced shares its slot.
    int occupied() const {
        return number_of(
            [&](const auto& w) { return w.slot < size && !(how_->overlap && w.id == old); });
    }
    int wanted() const {
        if (broken || is == phase::stopping)
            return 0;
        const int come = number_of([&](const auto& w) { return w.is_starting() && !is_extra(w); });
        const int for_calls = std::min(waiting.size() - come, size - occupied());
        const int for_minimum = is == phase::open ? at_least - occupied() : 0;
        return std::max({0, for_calls, for_minimum});
    }
    bool is_free(int slot) const {
        return std::ranges::none_of(workers, [&](const auto& w) {
            const bool has_given_it_up = how_->overlap && w.id == old && w.leaves && !successor;
            return w.slot == slot && !has_given_it_up;
        });
    }
    bool has_free_slot() const {
        for (int slot = 0; slot < size; ++slot)
            if (is_free(slot))
                return true;
        return false;
    }
    bool renews() const { return is == phase::open || (is == phase::draining && !waiting.empty()); }
    /// Whether it can be renewed now: one at a time.
    bool is_next(const worker_entry& w) const {
        return renews() && !broken && !old && !successor && !slot_to_renew && w.is_due &&
               !w.leaves && (w.is_idle() || (how_->overlap && w.is_running()));
    }
    bool has_next() const {
        return std::ranges::any_of(workers, [&](const auto& w) { return is_next(w); });
    }
    const worker_entry* idle_for_longest() const {
        const worker_entry* found = nullptr;
        for (const auto& w : workers)
            if (w.is_idle() && (!found || w.turn < found->turn))
                found = &w;
        return found;
    }
    const worker_entry* used_last() const {
        const worker_entry* found = nullptr;
        for (const auto& w : workers)
            if (w.is_idle() && !w.leaves && (!found || w.turn > found->turn))
                found = &w;
        return found;
    }
    bool was_idle_too_long(const worker_entry& w) const {
        return is == phase::open && w.is_idle() && &w == idle_for_longest() &&
               staying() > at_least && later(w.since, how_->idle) <= now;
    }
    /// A slot that waits for a successor is forgotten if nobody comes to it any more.
    void look_at_slot() {
        if (slot_to_renew && (!renews() || !is_free(*slot_to_renew)))
            slot_to_renew.reset();
    }

    // --- events ---

    void is_submitted(dispatcher& d, std::size_t kind);
    void is_cancelled(dispatcher& d, call_id call, bool stops);
    void is_ready(worker_entry& w);
    void has_finished(worker_entry& w, bool failed);
    void was_not_taken(worker_entry& w);
    void has_died(worker_id id);
    void time_is(dispatcher& d);
    void is_recycled();
    void is_resized(int n);
    void ends(bool at_once);
    void wait_again(const call_entry& call) {
        waiting.push(call);
        std::ranges::sort(waiting, {}, &call_entry::id);
    }
    void expect_end(call_id call, call_end how, worker_id worker = 0) {
        ends_now.push({call, how, worker});
    }
    void expect_stop(const worker_entry& w, bool is_ours, std::optional<call_end> end) {
        stops_now.push({w.id, is_ours, end});
    }

    // --- orders ---

    void settle(dispatcher& d);
    void read(const order& o);
    void started(const order& o);
    void sent(worker_entry& w, const order& o);
    void stopped(worker_entry& w);
    void retired(worker_entry& w);
    void completed(const order& o);
    void answered(const order& o);

    // --- facts ---

    void check_work();
    void check_told(const dispatcher& d);
    std::optional<time_point> next_time() const;
    /// If nothing is to be done, a pause may end.
    time_point time_to_wait_for(const dispatcher& d) const {
        return d.deadline().value_or(next_start > now ? next_start : time_point::max());
    }
    void be_strange(dispatcher& d);

    time_point now{1s};
    int size;
    int at_least;
    few<worker_entry> workers;  // by their numbers
    few<call_entry> waiting;    // by their numbers
    few<request_entry> requests;
    few<expected_end> ends_now;
    few<expected_stop> stops_now;
    phase is = phase::open;
    bool drops = false;    // now
    bool is_late = false;  // deadline() has passed without on_time()
    bool broken = false;
    bool have_failed = false;
    int deaths_told = 0;
    int deaths = 0;  // in a row, before READY
    duration pause{};
    time_point next_start{};
    std::optional<time_point> drain_until;
    std::optional<worker_id> old, successor;
    std::optional<int> slot_to_renew;
    few<int> lost_slots;
    counts counted;
    worker_id last_worker = 0;
    call_id last_call = 0;
    request_id last_request = 0;
    std::uint64_t turns = 0;
    int troubles = 0;
    const setting* s_;
    const rules* how_;
};

std::vector<event> ledger::possible(const dispatcher& d) const {
    std::vector<event> found;
    const auto add = [&](bool is_possible, what kind, std::uint64_t of = 0) {
        if (is_possible && may(kind))
            found.push_back({kind, of});
    };
    if (last_call < static_cast<call_id>(s_->calls))
        for (std::size_t i = 0; i < s_->calls_have.size(); ++i)
            add(true, what::submit, i);
    for (const auto& c : waiting)
        add(true, what::cancel, c.id);
    const bool has_trouble = troubles < s_->troubles;
    for (const auto& w : workers) {
        const bool has_call = w.call.id != 0 && !w.is_dropped;
        add(has_call, what::cancel, w.call.id);
        add(has_call, what::give_up, w.call.id);
        add(w.is_starting(), what::ready, w.id);
        add(w.is_running(), what::finish, w.id);
        add(w.is_running(), what::fail, w.id);
        add(w.is_running() && has_trouble, what::not_taken, w.id);
        add(!w.is_starting() && !w.is_due, what::grow, w.id);
        add(!w.is_stopping() && has_trouble, what::broke, w.id);
        add(w.is_stopping() || has_trouble, what::die, w.id);
    }
    const bool has_time = time_to_wait_for(d) != time_point::max();
    add(has_time, what::time);
    add(has_time && !is_late, what::clock);
    if (last_request < static_cast<request_id>(s_->wishes)) {
        add(is == phase::open, what::recycle);
        for (const int n : s_->sizes)
            add(is == phase::open && n != size, what::resize, static_cast<std::uint64_t>(n));
        add(true, what::drain);
        add(true, what::stop);
        add(true, what::drop);
    }
    return found;
}

void ledger::happen(dispatcher& d, const event& e) {
    if (s_->strange)
        be_strange(d);
    drops = e.kind == what::drop;
    const std::uint64_t of = e.of;
    worker_entry* const w = find(of);
    switch (e.kind) {
    case what::submit:
        is_submitted(d, of);
        break;
    case what::cancel:
    case what::give_up:
        is_cancelled(d, of, e.kind == what::cancel);
        break;
    case what::ready:
        is_ready(*w);
        d.ready(of, now);
        break;
    case what::finish:
    case what::fail:
        has_finished(*w, e.kind == what::fail);
        d.finished(of, e.kind == what::fail, now);
        break;
    case what::not_taken:
        was_not_taken(*w);
        d.not_taken(of, now);
        break;
    case what::grow:
        w->is_due = true;
        d.measured(of, how_->memory_per_worker, now);
        break;
    case what::broke:
        ++troubles;
        expect_stop(*w, false, std::nullopt);
        d.broke(of, now);
        break;
    case what::die:
        has_died(of);
        d.died(of, now);
        break;
    case what::time:
        time_is(d);
        break;
    case what::clock:
        now = std::max(now, time_to_wait_for(d));
        is_late = true;
        return check_told(d);
    case what::recycle:
        is_recycled();
        d.recycle(last_request, now);
        break;
    case what::resize:
        is_resized(static_cast<int>(of));
        d.resize(last_request, size, now);
        break;
    case what::drain:
        requests.push({.id = ++last_request, .waits_for_all = true, .asked = e.kind});
        is = is == phase::open ? phase::draining : is;
        d.drain(last_request, now);
        break;
    case what::stop:
        requests.push({.id = ++last_request, .waits_for_all = true, .asked = e.kind});
        if (is != phase::stopping) {
            ends(false);
            drain_until = now + how_->drain_period;
        }
        d.stop(last_request, now);
        break;
    case what::drop:
        ++last_request;
        ends(true);
        d.drop(now);
        break;
    }
    settle(d);
}

void ledger::is_submitted(dispatcher& d, std::size_t kind) {
    const limits& has = s_->calls_have[kind];
    const auto until = has.wait ? std::optional(now + *has.wait) : std::nullopt;
    waiting.push({++last_call, now, until, has.run});
    if (is != phase::open) {
        expect_end(last_call, call_end::aborted);
    } else if (broken) {
        broken = false;
        deaths = 0;
    }
    d.submit(last_call, has.wait, has.run, now);
}

void ledger::is_cancelled(dispatcher& d, call_id call, bool stops) {
    const auto w = std::ranges::find_if(workers, [&](const auto& w) { return w.call.id == call; });
    if (w == workers.end())
        expect_end(call, call_end::aborted);
    else if (!stops)
        expect_end(call, call_end::aborted, w->id);
    else if (w->is_stopping())
        w->end = w->end.value_or(call_end::aborted);
    else if (!w->end)  // else it was decided before
        expect_stop(*w, true, call_end::aborted);
    d.cancel(call, stops, now);
}

void ledger::is_ready(worker_entry& w) {
    w.state = worker_state::idle;
    w.was_ready = true;
    w.since = now;
    w.turn = ++turns;
    w.deadline.reset();
    deaths = 0;
    deaths_told = 0;
    have_failed = false;
    broken = false;
    if (successor != w.id)
        return;
    successor.reset();
    if (old)
        find(*old)->leaves = true;
}

void ledger::has_finished(worker_entry& w, bool failed) {
    if (!w.is_dropped)
        expect_end(w.call.id, call_end::answered, w.id);
    ++counted.done;
    counted.failed += failed ? 1 : 0;
    counted.ran += now - w.since;
    counted.longest_run = std::max(counted.longest_run, now - w.since);
    w.call = {};
    w.is_dropped = false;
    w.state = worker_state::idle;
    w.since = now;
    w.turn = ++turns;
    w.deadline.reset();
    ++w.tasks;
    if (how_->tasks_per_worker != 0 && w.tasks >= how_->tasks_per_worker)
        w.is_due = true;
    pause = duration();
}

void ledger::was_not_taken(worker_entry& w) {
    ++troubles;
    if (!w.is_dropped && is == phase::stopping)
        expect_end(w.call.id, call_end::aborted, w.id);
    else if (!w.is_dropped)
        wait_again(w.call);
    w.call = {};
    w.is_dropped = false;
    expect_stop(w, false, std::nullopt);
}

void ledger::has_died(worker_id id) {
    const worker_entry w = *find(id);
    workers.erase(find(id));
    troubles += w.is_stopping() ? 0 : 1;
    if (w.call.id != 0) {
        ++counted.lost;
        if (!w.is_dropped)
            expect_end(w.call.id, w.end.value_or(call_end::died), id);
    }
    if (!w.is_ours && w.tasks == 0) {
        deaths += w.was_ready ? 0 : 1;
        pause = pause == duration() ? how_->first_pause : std::min(2 * pause, how_->longest_pause);
        next_start = now + pause;
    }
    if (!w.leaves && is_free(w.slot) && std::ranges::find(lost_slots, w.slot) == lost_slots.end())
        lost_slots.push(w.slot);
    if (old == id || successor == id) {
        old.reset();
        successor.reset();
        if (!how_->overlap && w.slot < size)
            slot_to_renew = w.slot;
    }
    for (auto& r : requests)
        if (const auto found = std::ranges::find(r.waits_for, id); found != r.waits_for.end())
            r.waits_for.erase(found);
    if (deaths >= how_->start_attempts) {
        have_failed = true;
        deaths_told = deaths;
        for (auto& r : requests)
            if (r.renews) {
                r.is_refused = true;
                for (const worker_id each : r.waits_for)
                    find(each)->is_due = false;
            }
        broken = number_of([](const auto& w) { return w.was_ready && !w.is_stopping(); }) == 0;
        if (!broken)
            deaths = 0;
    }
    if (broken)
        for (const auto& c : waiting)
            expect_end(c.id, call_end::broken);
}

void ledger::time_is(dispatcher& d) {
    const time_point until = std::max(now, time_to_wait_for(d));
    if (!is_late) {
        d.on_time(until - 1ns);
        demand(d.take_orders().empty(), facts::nothing_early);
    }
    now = until;
    is_late = false;
    few<worker_id> found;
    for (const auto& w : workers)
        if (!w.is_stopping() && w.deadline && *w.deadline <= now)
            found.push(w.id);
    demand(std::ranges::equal(d.late(now), found), facts::tells_late);
    const bool is_drained = drain_until && *drain_until <= now;
    for (const auto& w : workers) {
        const auto end = [&](call_end how) {
            return w.is_dropped ? std::nullopt : std::optional(how);
        };
        const bool is_up = w.deadline && *w.deadline <= now;
        if (w.is_starting() && is_up)
            expect_stop(w, false, std::nullopt);
        else if (w.is_running() && is_up)
            expect_stop(w, true, end(call_end::timed_out));
        else if (w.is_running() && is_drained)
            expect_stop(w, true, end(call_end::aborted));
    }
    if (is_drained)
        drain_until.reset();
    d.on_time(now);
}

void ledger::is_recycled() {
    request_entry r{.id = ++last_request, .renews = true};
    for (auto& w : workers)
        if (!w.is_stopping()) {
            w.is_due = true;
            r.waits_for.push(w.id);
        }
    requests.push(r);
}

void ledger::is_resized(int n) {
    size = n;
    at_least = std::min(at_least, n);
    if (slot_to_renew && *slot_to_renew >= n)
        slot_to_renew.reset();
    request_entry r{.id = ++last_request};
    for (auto& w : workers)
        if (w.slot >= n) {
            r.waits_for.push(w.id);
            w.leaves = true;
            if (w.is_starting())
                expect_stop(w, true, std::nullopt);
        }
    requests.push(r);
}

/// No calls wait any more; those that run may end, unless `at_once`.
void ledger::ends(bool at_once) {
    is = phase::stopping;
    for (const auto& c : waiting)
        expect_end(c.id, call_end::aborted);
    if (!at_once)
        return;
    drain_until.reset();
    for (const auto& w : workers) {
        if (w.call.id != 0 && !w.is_dropped)
            expect_end(w.call.id, call_end::aborted, w.id);
        expect_stop(w, true, std::nullopt);
    }
}

void ledger::settle(dispatcher& d) {
    for (const order& o : d.take_orders())
        read(o);
    if (workers.empty())
        drain_until.reset();
    look_at_slot();
    check_work();
    check_told(d);
    ends_now.clear();
    stops_now.clear();
}

void ledger::read(const order& o) {
    if (broken_fact)
        return;
    switch (o.what) {
    case order::kind::start:
        return started(o);
    case order::kind::complete:
        return completed(o);
    case order::kind::grant:
    case order::kind::refuse:
        return answered(o);
    case order::kind::send:
    case order::kind::stop:
    case order::kind::retire:
        break;
    }
    worker_entry* const w = find(o.worker);
    if (!w || w->slot != o.slot)
        return demand(false, facts::is_known);
    if (o.what == order::kind::send)
        sent(*w, o);
    else if (o.what == order::kind::stop)
        stopped(*w);
    else
        retired(*w);
}

void ledger::started(const order& o) {
    look_at_slot();
    demand(o.worker > last_worker, facts::new_worker);
    demand(!broken && next_start <= now, facts::not_in_pause);
    demand(starting() < how_->starts_at_once, facts::few_starts);
    last_worker = o.worker;
    const auto renewed = std::ranges::find_if(
        workers, [&](const auto& w) { return w.slot == o.slot && is_next(w); });
    if (how_->overlap && renewed != workers.end()) {
        old = renewed->id;
        successor = o.worker;
    } else if (slot_to_renew == o.slot) {
        slot_to_renew.reset();
        successor = o.worker;
    } else {
        demand(wanted() > 0, facts::start_has_reason);
        demand(o.slot >= 0 && o.slot < size && is_free(o.slot), facts::slot_is_free);
        const auto is_lost = [&](int slot) {
            return std::ranges::find(lost_slots, slot) != lost_slots.end();
        };
        for (int slot = 0; slot < size; ++slot)
            demand(!is_lost(slot) || !is_free(slot) || is_lost(o.slot), facts::lost_slot_first);
    }
    const auto lost = std::ranges::find(lost_slots, o.slot);
    if (lost != lost_slots.end() && !(how_->overlap && successor == o.worker)) {
        lost_slots.erase(lost);
        ++counted.replaced;
    }
    worker_entry fresh;
    fresh.id = o.worker;
    fresh.slot = o.slot;
    fresh.since = now;
    fresh.deadline = later(now, how_->ready_within);
    workers.push(fresh);
}

void ledger::sent(worker_entry& w, const order& o) {
    const auto call = std::ranges::find(waiting, o.call, &call_entry::id);
    if (call == waiting.end())
        return demand(false, facts::has_one_worker);
    demand(call == waiting.begin(), facts::in_turn);
    demand(w.is_idle() && !w.leaves && is != phase::stopping, facts::only_idle);
    demand(&w == used_last(), facts::last_used);
    demand(how_->overlap || !is_next(w), facts::no_task_more);
    w.state = worker_state::running;
    w.since = now;
    w.call = *call;
    w.deadline = call->run ? std::optional(now + *call->run) : std::nullopt;
    counted.waited += now - call->since;
    counted.longest_wait = std::max(counted.longest_wait, now - call->since);
    waiting.erase(call);
}

void ledger::stopped(worker_entry& w) {
    const auto found = std::ranges::find(stops_now, w.id, &expected_stop::worker);
    if (found != stops_now.end()) {
        w.is_ours = found->is_ours;
        w.end = found->end;
        stops_now.erase(found);
    } else {
        demand(is_over() && w.is_starting(), facts::stop_has_reason);
        w.is_ours = true;
    }
    w.state = worker_state::stopping;
    w.deadline.reset();
}

void ledger::retired(worker_entry& w) {
    const bool is_renewed = !how_->overlap && is_next(w);
    demand(w.is_idle(), facts::retire_has_reason);
    demand(w.leaves || is_over() || is_renewed || was_idle_too_long(w), facts::retire_has_reason);
    if (is_renewed)
        old = w.id;
    counted.recycled += w.id == old && !successor ? 1 : 0;
    w.state = worker_state::stopping;
    w.is_ours = true;
    w.leaves = true;
}

void ledger::completed(const order& o) {
    const auto waits = std::ranges::find(waiting, o.call, &call_entry::id);
    const auto expected = std::ranges::find(ends_now, o.call, &expected_end::call);
    const auto w =
        std::ranges::find_if(workers, [&](const auto& w) { return w.call.id == o.call; });
    if (expected != ends_now.end()) {
        demand(expected->how == o.how && expected->worker == o.worker, facts::right_end);
        ends_now.erase(expected);
    } else {
        demand(waits != waiting.end() || (w != workers.end() && !w->is_dropped), facts::ends_once);
        demand(o.how == call_end::not_begun, facts::right_end);
        demand(waits != waiting.end() && waits->until && *waits->until <= now && o.worker == 0,
               facts::waits_in_time);
        demand(!used_last(), facts::none_is_idle);
    }
    if (waits != waiting.end())
        waiting.erase(waits);
    else if (w != workers.end())
        w->is_dropped = w->had_dropped = true;
}

void ledger::answered(const order& o) {
    const auto r = std::ranges::find(requests, o.request, &request_entry::id);
    const bool is_grant = o.what == order::kind::grant;
    if (r == requests.end())
        return demand(false, is_grant ? facts::right_grant : facts::right_refusal);
    const bool is_done =
        r->waits_for_all ? workers.empty() && waiting.empty() : r->waits_for.empty();
    demand(!is_grant || (is_done && !r->is_refused), facts::right_grant);
    demand(is_grant || r->is_refused, facts::right_refusal);
    requests.erase(r);
}

/// What must have been done.
void ledger::check_work() {
    demand(ends_now.empty(), facts::end_is_told);
    demand(stops_now.empty(), facts::stop_is_told);
    demand(waiting.empty() || !used_last(), facts::none_waits);
    for (const auto& c : waiting)
        demand(is_late || !c.until || *c.until > now, facts::not_too_long);
    for (const auto& w : workers) {
        demand(!w.is_idle() || !(w.leaves || is_over()), facts::retire_is_told);
        demand(!w.is_starting() || !is_over(), facts::stop_is_told);
        demand(is_late || !was_idle_too_long(w), facts::shrinks);
    }
    demand(is_late || !may_start() || wanted() == 0 || !has_free_slot(), facts::start_is_made);
    const bool may_renew = (how_->overlap && !may_start()) || !has_next();
    const bool has_renewed = !slot_to_renew || broken || !may_start();
    demand(is_late || (may_renew && has_renewed), facts::renewal_goes_on);
    for (const auto& r : requests) {
        demand(!r.is_refused, facts::right_refusal);
        demand(r.waits_for_all ? !workers.empty() || !waiting.empty() : !r.waits_for.empty(),
               facts::right_grant);
    }
    const int in_size = number_of([&](const auto& w) { return w.slot < size; });
    demand(in_size <= size + (how_->overlap ? 1 : 0), facts::within_size);
    for (const auto& w : workers) {
        const auto beside = number_of([&](const auto& v) { return v.slot == w.slot; });
        demand(beside <= (how_->overlap ? 2 : 1), facts::within_size);
    }
}

/// When something is to be done next.
std::optional<time_point> ledger::next_time() const {
    std::optional<time_point> next = drain_until;
    const auto add = [&](std::optional<time_point> at) {
        if (at && (!next || *at < *next))
            next = at;
    };
    for (const auto& c : waiting)
        add(c.until);
    for (const auto& w : workers)
        add(w.deadline);
    if (const auto w = idle_for_longest(); w && is == phase::open && staying() > at_least)
        add(later(w->since, how_->idle));
    const bool wants_start =
        (wanted() > 0 && has_free_slot()) || has_next() || (slot_to_renew && !broken);
    if (wants_start && starting() < how_->starts_at_once)
        add(next_start);
    return next;
}

void ledger::check_told(const dispatcher& d) {
    if (broken_fact)
        return;
    const int idle = number_of([](const auto& w) { return w.is_idle(); });
    const int ready = number_of([](const auto& w) { return w.was_ready && !w.is_stopping(); });
    demand(d.live() == workers.size() && d.idle() == idle && d.ready() == ready,
           facts::tells_workers);
    for (const auto& w : workers)
        demand(d.was_ready(w.id) == w.was_ready, facts::tells_workers);
    demand(d.waiting() == static_cast<std::size_t>(waiting.size()), facts::tells_waiting);
    demand(d.is_open() == (is == phase::open) && d.is_broken() == broken, facts::tells_phase);
    demand(d.deaths() == deaths_told && d.has_failed_to_start() == have_failed,
           facts::tells_deaths);
    int throttled = 0;
    if (next_start > now && !broken)
        throttled = how_->overlap ? wanted() + (has_next() ? 1 : 0)
                                  : std::max(wanted(), slot_to_renew ? 1 : 0);
    demand(d.throttled(now) == throttled, facts::tells_throttled);
    const counts& c = d.counted();
    demand(c.done == counted.done && c.failed == counted.failed && c.lost == counted.lost &&
               c.replaced == counted.replaced && c.recycled == counted.recycled,
           facts::tells_counts);
    demand(c.waited == counted.waited && c.longest_wait == counted.longest_wait &&
               c.ran == counted.ran && c.longest_run == counted.longest_run,
           facts::tells_times);
    const auto next = next_time();
    demand(d.deadline() == next, facts::tells_deadline);
    demand(is_late || !next || *next > now, facts::tells_deadline);
    int given = 0;
    for (const auto& w : workers)
        given += w.call.id != 0 ? 1 : 0;
    demand(given == number_of([](const auto& w) {
               return w.is_running() || (w.is_stopping() && w.call.id != 0);
           }),
           facts::none_is_lost);
}

/// Says what can't be, and what is too late.
void ledger::be_strange(dispatcher& d) {
    const worker_id nobody = last_worker + 1;
    for (const auto& w : workers) {
        if (!w.is_starting())
            d.ready(w.id, now);
        if (!w.is_running()) {
            d.finished(w.id, true, now);
            d.not_taken(w.id, now);
        }
        if (w.is_stopping())
            d.broke(w.id, now);
        d.measured(w.id, how_->memory_per_worker == 0 ? ~0ull : how_->memory_per_worker - 1, now);
        if (w.end)
            d.cancel(w.call.id, true, now);
    }
    d.ready(nobody, now);
    d.finished(nobody, false, now);
    d.not_taken(nobody, now);
    d.measured(nobody, ~0ull, now);
    d.broke(nobody, now);
    d.died(nobody, now);
    for (call_id call = 0; call <= last_call + 1; ++call) {
        const bool waits = std::ranges::find(waiting, call, &call_entry::id) != waiting.end();
        const bool is_given = std::ranges::any_of(
            workers, [&](const auto& w) { return w.call.id == call && !w.is_dropped; });
        if (waits || is_given)
            continue;
        d.cancel(call, true, now);
        d.cancel(call, false, now);
    }
    demand(d.take_orders().empty(), facts::ignores);
    check_told(d);
}

/// What two states must have in common to be the same.
std::string ledger::key() const {
    std::array<time_point, 3 * few<int>::most> times;
    std::size_t count = 0;
    const auto note = [&](std::optional<time_point> at) {
        if (at && *at > now && *at != time_point::max())
            times.at(count++) = *at;
    };
    note(drain_until);
    note(next_start);
    for (const auto& c : waiting)
        note(c.until);
    for (const auto& w : workers) {
        note(w.deadline);
        note(w.call.until);  // it may come back
        if (w.is_idle())
            note(later(w.since, how_->idle));
    }
    std::sort(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(count));
    std::string k;
    const auto add = [&](auto value) { k += static_cast<char>(value); };
    const auto add_time = [&](std::optional<time_point> at) {
        if (!at || *at == time_point::max())
            return add(-2);
        if (*at <= now)
            return add(-1);
        const auto found = std::find(times.begin(), times.end(), *at);
        add(std::distance(times.begin(), found));
    };
    const auto add_call = [&](const call_entry& c) {
        add_time(c.until);
        add(c.until ? (*c.until - c.since).count() : 0);
        add(c.run ? c.run->count() : 0);
    };
    add(size);
    add(at_least);
    add(static_cast<int>(is) * 8 + (is_late ? 4 : 0) + (broken ? 2 : 0) + (have_failed ? 1 : 0));
    add(deaths_told);
    add(deaths);
    add(pause.count());
    add_time(next_start);
    add_time(drain_until);
    add(last_call);
    add(last_request);
    add(troubles);
    add(slot_to_renew.value_or(-1));
    for (int slot = 0; slot < 4; ++slot)
        add(std::ranges::find(lost_slots, slot) != lost_slots.end());
    add(waiting.size());
    for (const auto& c : waiting)
        add_call(c);
    for (const auto& w : workers) {
        add(w.slot * 8 + static_cast<int>(w.state));
        add((w.was_ready ? 1 : 0) + (w.is_due ? 2 : 0) + (w.leaves ? 4 : 0) + (w.is_ours ? 8 : 0) +
            (w.is_dropped ? 16 : 0) + (w.id == old ? 32 : 0) + (w.id == successor ? 64 : 0));
        add((w.end ? static_cast<int>(*w.end) : -1) * 2 + (w.had_dropped ? 1 : 0));
        add(std::min(w.tasks, std::max<std::uint64_t>(1, how_->tasks_per_worker)));
        add_time(w.deadline);
        if (w.call.id != 0)
            add_call(w.call);
        if (w.is_idle()) {
            add_time(later(w.since, how_->idle));
            add(number_of([&](const auto& v) { return v.is_idle() && v.turn < w.turn; }));
        }
        for (const auto& r : requests)
            add(std::ranges::find(r.waits_for, w.id) != r.waits_for.end());
    }
    for (const auto& r : requests)
        add((r.renews ? 1 : 0) + 2 * static_cast<int>(r.asked));
    return k;
}

struct step {
    std::size_t before;
    event what;
};

std::string told(const std::vector<step>& steps, std::size_t before, const event& last) {
    std::vector<event> history{last};
    for (; before != 0; before = steps[before].before)
        history.push_back(steps[before].what);
    std::string text;
    for (auto each = history.rbegin(); each != history.rend(); ++each)
        text += std::string(" ") + names[static_cast<int>(each->kind)] + "(" +
                std::to_string(each->of) + ")";
    return text;
}

/// Visits all states, the nearest ones first.
/// @return the first fact that did not hold, and the shortest history that leads there
std::string search(const setting& s) {
    struct state {
        dispatcher machine;
        ledger facts;
        std::size_t step;
    };
    std::vector<step> steps{{0, {}}};
    std::deque<state> to_do;
    to_do.push_back({dispatcher(s.how, 1), ledger(s), 0});
    to_do.back().facts.begin(to_do.back().machine);
    if (const char* const fact = to_do.back().facts.broken_fact)
        return std::string(fact) + " | begin";
    std::unordered_set<std::string> seen{to_do.back().facts.key()};
    for (; !to_do.empty(); to_do.pop_front()) {
        const state& from = to_do.front();
        for (const event& e : from.facts.possible(from.machine)) {
            state next = from;
            try {
                next.facts.happen(next.machine, e);
            } catch (const std::exception&) {
                next.facts.broken_fact = facts::throws_nothing;
            }
            if (const char* const fact = next.facts.broken_fact)
                return std::string(fact) + " |" + told(steps, from.step, e);
            if (!seen.insert(next.facts.key()).second)
                continue;
            next.step = steps.size();
            steps.push_back({from.step, e});
            to_do.push_back(std::move(next));
        }
    }
    return "";
}

rules small(int size, int at_least) {
    rules r;
    r.size = size;
    r.at_least = at_least;
    r.idle = 30ns;
    r.start_attempts = 2;
    r.ready_within = 50ns;
    r.drain_period = 15ns;
    r.first_pause = 1ns;
    r.longest_pause = 2ns;
    return r;
}

/// Nobody is stopped for being slow, or let go for being idle.
rules patient(int size, int at_least) {
    rules r = small(size, at_least);
    r.idle = duration::max();
    r.ready_within = duration::max();
    return r;
}

/// Everything that calls and workers do.
std::set<what> lives() { return {what::submit, what::ready, what::finish, what::die, what::time}; }
std::set<what> lives_and(const std::set<what>& more) {
    auto all = lives();
    all.insert(more.begin(), more.end());
    return all;
}

void check_all(const setting& s) {
    const std::string found = search(s);
    CHECK_MESSAGE(found.empty(), found);
}

/// A pool of one worker that dies at once, again and again.
std::vector<duration> pauses(std::uint32_t seed) {
    rules r = small(1, 1);
    r.start_attempts = 100;
    r.first_pause = 1us;
    r.longest_pause = 5us;
    dispatcher d(r, seed);
    time_point now{1s};
    d.begin(now);
    std::vector<duration> found;
    for (worker_id worker = 1; worker <= 4; ++worker) {
        d.died(worker, now);
        found.push_back(d.deadline().value_or(now) - now);
        now += found.back();
        d.on_time(now);
    }
    return found;
}

/// After how many tasks the first worker is renewed.
int tasks_of_first(std::uint64_t limit, std::uint32_t seed) {
    rules r = small(1, 1);
    r.tasks_per_worker = limit;
    dispatcher d(r, seed);
    const time_point now{1s};
    d.begin(now);
    d.ready(1, now);
    int tasks = 0;
    while (d.live() == 1 && tasks < 1000) {
        d.submit(static_cast<call_id>(++tasks), {}, {}, now);
        d.finished(1, false, now);
    }
    return tasks;
}

}  // namespace

TEST_CASE("pool dispatch search: pauses double up to a limit, and are up to a half shorter") {
    std::set<duration> firsts;
    for (std::uint32_t seed = 1; seed <= 50; ++seed) {
        const auto found = pauses(seed);
        const std::vector<duration> most = {1us, 2us, 4us, 5us};
        for (std::size_t i = 0; i < most.size(); ++i) {
            CHECK(found[i] <= most[i]);
            CHECK(found[i] >= most[i] / 2);
        }
        firsts.insert(found[0]);
    }
    CHECK(*firsts.begin() < 600ns);
    CHECK(*firsts.rbegin() > 900ns);
}

TEST_CASE("pool dispatch search: limits from ten on are up to a tenth lower") {
    std::set<int> found;
    for (std::uint32_t seed = 1; seed <= 50; ++seed) {
        CHECK(tasks_of_first(9, seed) == 9);
        found.insert(tasks_of_first(50, seed));
    }
    CHECK(*found.begin() == 46);
    CHECK(*found.rbegin() == 50);
}

TEST_CASE("pool dispatch search: calls wait, run, end and are cancelled") {
    setting s;
    s.how = small(2, 0);
    s.events = lives_and({what::cancel, what::give_up, what::fail, what::not_taken, what::clock});
    s.calls_have = {{10ns, 20ns}};
    s.calls = 2;
    s.troubles = 1;
    check_all(s);
}

TEST_CASE("pool dispatch search: workers of several calls are started, kept and let go") {
    for (const int size : {1, 2, 3}) {
        setting s;
        s.how = small(size, size / 2);
        s.how.starts_at_once = size == 2 ? 1 : size;
        s.events = lives();
        if (size < 3)
            s.calls_have.push_back({0ns, {}});
        s.calls = size < 3 ? 4 : how_many(4, 3);
        check_all(s);
    }
}

TEST_CASE("pool dispatch search: calls that may wait for ever hide no limit of others") {
    setting s;
    s.how = small(1, 0);
    s.events = lives_and({what::cancel});
    s.calls_have = {{}, {10ns, {}}};
    s.calls = 3;
    check_all(s);
}

TEST_CASE("pool dispatch search: workers die at every moment") {
    for (const int attempts : {1, 2}) {
        setting s;
        s.how = small(2, 1);
        s.how.start_attempts = attempts;
        s.events = lives_and({what::broke, what::not_taken, what::cancel, what::give_up});
        s.calls = 2;
        s.troubles = how_many(4, 1 + attempts);
        s.strange = attempts == 1;
        check_all(s);
    }
}

TEST_CASE("pool dispatch search: workers are renewed after tasks, memory and by recycle()") {
    for (const bool overlap : {true, false})
        for (const bool by_tasks : {true, false}) {
            setting s;
            s.how = patient(2, 1);
            s.how.overlap = overlap;
            s.how.tasks_per_worker = by_tasks ? 1 : 0;
            s.how.memory_per_worker = by_tasks ? 0 : 5;
            s.events = lives_and({what::recycle, what::drain, what::stop});
            if (!by_tasks)
                s.events.insert(what::grow);
            s.calls = how_many(2, by_tasks ? 2 : 1);
            s.troubles = by_tasks ? how_many(2, 1) : 2;
            s.wishes = 1;
            s.strange = true;
            check_all(s);
        }
}

TEST_CASE("pool dispatch search: the pool gets another size at every moment") {
    for (const bool overlap : {true, false})
        for (const int at_least : {0, 2}) {
            setting s;
            s.how = patient(2, at_least);
            s.how.overlap = overlap;
            s.events = lives_and({what::recycle, what::resize});
            s.sizes = {1, 3};
            s.calls = how_many(2, 1);
            s.troubles = 1;
            s.wishes = 2;
            check_all(s);
        }
}

TEST_CASE("pool dispatch search: idle workers are let go while the pool changes") {
    for (const int at_least : {0, 1}) {
        setting s;
        s.how = small(2, at_least);
        s.how.ready_within = duration::max();
        s.events = lives_and({what::recycle, what::resize});
        s.sizes = {1};
        s.calls = 3 - at_least;
        s.troubles = 1;
        s.wishes = 1;
        check_all(s);
    }
}

TEST_CASE("pool dispatch search: the pool drains, stops and is dropped at every moment") {
    setting s;
    s.how = patient(2, 1);
    s.events = lives_and(
        {what::cancel, what::give_up, what::not_taken, what::drain, what::stop, what::drop});
    s.calls_have = {{{}, 20ns}};
    s.calls = how_many(3, 2);
    s.troubles = 1;
    s.wishes = 2;
    s.strange = true;
    check_all(s);
}

}  // namespace pool_dispatch_search_test
