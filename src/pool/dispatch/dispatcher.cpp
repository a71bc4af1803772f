// SPDX-License-Identifier: BSL-1.0
// The calls of a pool: which worker gets which one, and how each ends.
#include "pool/dispatch/dispatcher.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace cohort::pools {

dispatcher::dispatcher(const rules& r, std::uint32_t seed)
    : rules_(r), damper_(r.first_pause, r.longest_pause, r.start_attempts), random_(seed) {}

void dispatcher::begin(time_point now) { go_on(now); }

std::vector<order> dispatcher::take_orders() { return std::exchange(orders_, {}); }

/// Called after each change.
void dispatcher::go_on(time_point now) {
    if (!rules_.overlap)
        recycle_next(now);  // before it gets another call
    send_calls(now);
    while (const auto due = calls_.take_due(now))
        complete(*due, call_end::not_begun);
    shrink(now);
    recycle_next(now);
    start_some(now);
    grant_requests();
}

void dispatcher::complete(call_id call, call_end how, worker_id worker) {
    orders_.push_back({.what = order::kind::complete, .worker = worker, .call = call, .how = how});
}

// --- calls ---

void dispatcher::submit(call_id call, std::optional<duration> wait, std::optional<duration> run,
                        time_point now) {
    if (!is_open())
        return complete(call, call_end::aborted);
    if (std::exchange(is_broken_, false))
        damper_.forget_deaths();
    calls_.add(call, {now, wait ? std::optional(later(now, *wait)) : std::nullopt, run});
    go_on(now);
}

void dispatcher::send_calls(time_point now) {
    while (!idle_.empty() && !calls_.empty()) {
        const worker_id id = idle_.back();
        idle_.pop_back();
        const auto [call, how] = *calls_.take_first();
        worker& to = workers_.at(id);
        to.state = worker_state::running;
        to.since = now;
        to.call = call;
        to.how = how;
        to.deadline = how.run ? std::optional(later(now, *how.run)) : std::nullopt;
        counts_.waited += now - how.since;
        counts_.longest_wait = std::max(counts_.longest_wait, now - how.since);
        orders_.push_back({.what = order::kind::send, .worker = id, .slot = to.slot, .call = call});
    }
}

void dispatcher::cancel(call_id call, bool stops_worker, time_point now) {
    if (calls_.remove(call)) {
        complete(call, call_end::aborted);
        return go_on(now);
    }
    const auto found = std::ranges::find(workers_, std::optional(call),
                                         [](const auto& each) { return each.second.call; });
    if (found == workers_.end() || found->second.fate == call_end::dropped)
        return;
    worker& of = found->second;
    if (!stops_worker) {
        complete(call, call_end::aborted, found->first);
        of.fate = call_end::dropped;
    } else if (of.state == worker_state::stopping) {
        of.fate = of.fate.value_or(call_end::aborted);
    } else if (!of.fate) {
        stop_worker(found->first, of, true, call_end::aborted);
    }
}

void dispatcher::finished(worker_id id, bool failed, time_point now) {
    const auto found = workers_.find(id);
    if (found == workers_.end() || !found->second.call)
        return;
    worker& of = found->second;
    if (of.state != worker_state::running)
        return;  // it is being stopped: what it has sent since is dropped
    ++counts_.done;
    counts_.failed += failed ? 1 : 0;
    counts_.ran += now - of.since;
    counts_.longest_run = std::max(counts_.longest_run, now - of.since);
    const call_id call = *std::exchange(of.call, std::nullopt);
    if (std::exchange(of.fate, std::nullopt) != call_end::dropped)
        complete(call, call_end::answered, id);
    damper_.finished_task();
    ++of.tasks;
    of.is_due = of.is_due || (of.most_tasks != 0 && of.tasks >= of.most_tasks);
    of.since = now;
    of.deadline.reset();
    let_go(id, of);
    go_on(now);
}

void dispatcher::not_taken(worker_id id, time_point now) {
    const auto found = workers_.find(id);
    if (found == workers_.end() || found->second.state != worker_state::running)
        return;
    worker& of = found->second;
    const call_id call = *std::exchange(of.call, std::nullopt);
    if (std::exchange(of.fate, std::nullopt) != call_end::dropped) {
        if (phase_ == phase::stopping)
            complete(call, call_end::aborted, id);
        else
            calls_.add(call, of.how);
    }
    stop_worker(id, of, false, std::nullopt);
    go_on(now);
}

/// All that wait.
void dispatcher::end_calls(call_end how) {
    while (const auto first = calls_.take_first())
        complete(first->first, how);
}

// --- time ---

void dispatcher::on_time(time_point now) {
    const bool drain_is_over = drain_until_ && *drain_until_ <= now;
    for (auto& [id, of] : workers_) {
        const bool is_late = of.deadline && *of.deadline <= now;
        if (of.state == worker_state::starting && is_late)
            stop_worker(id, of, false, std::nullopt);
        else if (of.state == worker_state::running && is_late)
            stop_worker(id, of, true, of.fate ? *of.fate : call_end::timed_out);
        else if (of.state == worker_state::running && drain_is_over)
            stop_worker(id, of, true, of.fate ? *of.fate : call_end::aborted);
    }
    if (drain_is_over)
        drain_until_.reset();
    go_on(now);
}

std::vector<worker_id> dispatcher::late(time_point now) const {
    std::vector<worker_id> found;
    for (const auto& [id, of] : workers_)
        if (of.deadline && *of.deadline <= now && of.state != worker_state::stopping)
            found.push_back(id);
    return found;
}

std::optional<time_point> dispatcher::deadline() const {
    auto next = calls_.deadline();
    const auto add = [&](std::optional<time_point> at) {
        if (at && (!next || *at < *next))
            next = at;
    };
    add(drain_until_);
    for (const auto& [id, of] : workers_)
        add(of.deadline);
    if (is_open() && !idle_.empty() && staying() > rules_.at_least)
        add(later(workers_.at(idle_.front()).since, rules_.idle));
    const bool starts_one =
        (wanted() > 0 && free_slot()) || next_due() || (recycling_.slot && !is_broken_);
    if (starts_one && has_room_for_start())
        add(damper_.next());
    return next;
}

// --- requests ---

void dispatcher::drain(request_id request, time_point now) {
    requests_.push_back({request, false, true, {}});
    if (is_open())
        phase_ = phase::draining;
    go_on(now);
}

void dispatcher::stop(request_id request, time_point now) {
    requests_.push_back({request, false, true, {}});
    if (phase_ != phase::stopping) {
        phase_ = phase::stopping;
        drain_until_ = later(now, rules_.drain_period);
        end_calls(call_end::aborted);
    }
    go_on(now);
}

void dispatcher::drop(time_point now) {
    phase_ = phase::stopping;
    drain_until_.reset();
    end_calls(call_end::aborted);
    for (auto& [id, of] : workers_) {
        if (of.call && of.fate != call_end::dropped)
            complete(*of.call, call_end::aborted, id);
        stop_worker(id, of, true, of.call ? std::optional(call_end::dropped) : std::nullopt);
        if (of.call)
            of.fate = call_end::dropped;
    }
    go_on(now);
}

void dispatcher::recycle(request_id request, time_point now) {
    requests_.push_back({request, true, false, {}});
    for (auto& [id, of] : workers_)
        if (of.state != worker_state::stopping) {
            of.is_due = true;
            requests_.back().waits_for.insert(id);
        }
    go_on(now);
}

void dispatcher::resize(request_id request, int size, time_point now) {
    requests_.push_back({request, false, false, {}});
    rules_.size = size;
    rules_.at_least = std::min(rules_.at_least, size);
    if (recycling_.slot && *recycling_.slot >= size)
        recycling_ = {};
    for (auto& [id, of] : workers_)
        if (of.slot >= size) {
            requests_.back().waits_for.insert(id);
            if (of.state == worker_state::starting)
                stop_worker(id, of, true, std::nullopt);
            of.retires = true;
            if (of.state == worker_state::idle)
                retire(id, of);
        }
    go_on(now);
}

/// The old workers serve on. Those beyond a limit are due again after their next task.
void dispatcher::refuse_recycling() {
    std::erase_if(requests_, [this](const request& each) {
        if (!each.renews)
            return false;
        for (const worker_id id : each.waits_for)
            workers_.at(id).is_due = false;
        orders_.push_back({.what = order::kind::refuse, .request = each.id});
        return true;
    });
}

void dispatcher::grant_requests() {
    if (workers_.empty())
        drain_until_.reset();
    std::erase_if(requests_, [this](const request& each) {
        const bool is_done =
            each.waits_for_all ? workers_.empty() && calls_.empty() : each.waits_for.empty();
        if (is_done)
            orders_.push_back({.what = order::kind::grant, .request = each.id});
        return is_done;
    });
}

}  // namespace cohort::pools
