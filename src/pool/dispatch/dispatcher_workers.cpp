// SPDX-License-Identifier: BSL-1.0
// The workers of a pool: when they start, rest, are replaced and let go.
#include "pool/dispatch/dispatcher.hpp"

#include <algorithm>
#include <utility>

namespace cohort::pools {

namespace {

/// Limits below this have no jitter.
constexpr std::uint64_t least_jittered = 10;

}  // namespace

/// Up to a tenth less, so that workers that began together do not end together.
std::uint64_t dispatcher::jittered(std::uint64_t limit) {
    if (limit < least_jittered)
        return limit;
    return limit - static_cast<std::uint64_t>(static_cast<double>(limit / 10) * chance());
}

// --- starts ---

int dispatcher::wanted() const {
    if (is_broken_ || phase_ == phase::stopping)
        return 0;
    int occupied = 0;
    int starting = 0;
    for (const auto& [id, of] : workers_) {
        // Its successor has the same slot.
        const bool counts_twice = rules_.overlap && recycling_.old == id;
        occupied += of.slot < rules_.size && !counts_twice ? 1 : 0;
        starting += of.state == worker_state::starting && !is_extra(id) ? 1 : 0;
    }
    const int for_calls =
        std::min(static_cast<int>(calls_.size()) - starting, rules_.size - occupied);
    return std::max({0, for_calls, is_open() ? rules_.at_least - occupied : 0});
}

/// Whether it is started beside the worker that it replaces.
bool dispatcher::is_extra(worker_id id) const noexcept {
    return rules_.overlap && id == recycling_.successor;
}

int dispatcher::ready() const noexcept {
    return static_cast<int>(std::ranges::count_if(workers_, [](const auto& w) {
        return w.second.was_ready && w.second.state != worker_state::stopping;
    }));
}

/// A worker that has been replaced, but still has a call, leaves its slot to its successor, and to
/// those after that.
bool dispatcher::is_used(int slot) const {
    return std::ranges::any_of(workers_, [&](const auto& w) {
        const bool was_replaced = rules_.overlap && w.first == recycling_.old && w.second.retires &&
                                  !recycling_.successor;
        return w.second.slot == slot && !was_replaced;
    });
}

std::optional<int> dispatcher::free_slot() const {
    const auto lost = std::ranges::find_if(
        lost_slots_, [this](int slot) { return slot < rules_.size && !is_used(slot); });
    if (lost != lost_slots_.end())
        return *lost;
    for (int slot = 0; slot < rules_.size; ++slot)
        if (!is_used(slot))
            return slot;
    return std::nullopt;
}

/// Whether few enough are being started.
bool dispatcher::has_room_for_start() const {
    return std::ranges::count_if(workers_, [](const auto& w) {
               return w.second.state == worker_state::starting;
           }) < rules_.starts_at_once;
}

bool dispatcher::may_start(time_point now) const {
    return has_room_for_start() && damper_.may_start(now);
}

int dispatcher::throttled(time_point now) const {
    if (is_broken_ || damper_.may_start(now))
        return 0;
    const bool is_replaced = rules_.overlap ? next_due().has_value() : recycling_.slot.has_value();
    return std::max(wanted() + (rules_.overlap && is_replaced ? 1 : 0), is_replaced ? 1 : 0);
}

void dispatcher::start_some(time_point now) {
    while (wanted() > 0 && may_start(now)) {
        const auto slot = free_slot();
        if (!slot)
            return;
        counts_.replaced += lost_slots_.erase(*slot);
        start(*slot, now);
    }
}

worker_id dispatcher::start(int slot, time_point now) {
    const worker_id id = ++last_;
    worker fresh;
    fresh.slot = slot;
    fresh.since = now;
    fresh.deadline = later(now, rules_.ready_within);
    fresh.most_tasks = jittered(rules_.tasks_per_worker);
    fresh.most_memory = jittered(rules_.memory_per_worker);
    workers_.emplace(id, fresh);
    orders_.push_back({.what = order::kind::start, .worker = id, .slot = slot});
    return id;
}

void dispatcher::ready(worker_id id, time_point now) {
    const auto found = workers_.find(id);
    if (found == workers_.end() || found->second.was_ready)
        return;
    worker& of = found->second;
    if (of.state != worker_state::starting)
        return;  // too late: it is being stopped
    of.was_ready = true;
    damper_.became_ready();
    is_broken_ = false;
    starts_ = {};
    of.since = now;
    of.deadline.reset();
    if (recycling_.successor == id && !recycling_.old) {
        recycling_ = {};
    } else if (recycling_.successor == id) {
        worker& old = workers_.at(*recycling_.old);
        old.retires = true;
        recycling_.successor.reset();
        if (old.state == worker_state::idle)
            retire(*recycling_.old, old);
    }
    let_go(id, of);
    go_on(now);
}

// --- ends ---

/// It has nothing to do any more, for now or for ever.
void dispatcher::let_go(worker_id id, worker& of) {
    of.state = worker_state::idle;
    if (of.retires || phase_ == phase::stopping)
        return retire(id, of);
    idle_.push_back(id);
}

void dispatcher::retire(worker_id id, worker& of) {
    std::erase(idle_, id);
    of.state = worker_state::stopping;
    of.is_ours = true;
    of.retires = true;
    // Not one that goes for another reason before its successor is ready.
    counts_.recycled += recycling_.old == id && !recycling_.successor ? 1 : 0;
    orders_.push_back({.what = order::kind::retire, .worker = id, .slot = of.slot});
}

void dispatcher::stop_worker(worker_id id, worker& of, bool is_ours, std::optional<call_end> fate) {
    std::erase(idle_, id);
    of.is_ours = is_ours;
    of.fate = fate;
    of.deadline.reset();
    of.state = worker_state::stopping;
    orders_.push_back({.what = order::kind::stop, .worker = id, .slot = of.slot});
}

bool dispatcher::was_ready(worker_id id) const noexcept {
    const auto found = workers_.find(id);
    return found != workers_.end() && found->second.was_ready;
}

void dispatcher::broke(worker_id id, time_point now) {
    const auto found = workers_.find(id);
    if (found == workers_.end() || found->second.state == worker_state::stopping)
        return;
    stop_worker(id, found->second, false, found->second.fate);
    go_on(now);
}

void dispatcher::died(worker_id id, time_point now) {
    const auto found = workers_.find(id);
    if (found == workers_.end())
        return;
    const worker of = found->second;
    workers_.erase(found);
    std::erase(idle_, id);
    if (of.call) {
        ++counts_.lost;
        if (of.fate != call_end::dropped)
            complete(*of.call, of.fate.value_or(call_end::died), id);
    }
    if (!of.is_ours && of.tasks == 0)
        damper_.died_early(of.was_ready, now, chance());
    if (!of.retires && !is_used(of.slot))
        lost_slots_.insert(of.slot);
    note_end_in_recycling(id, of);
    for (auto& each : requests_)
        each.waits_for.erase(id);
    if (damper_.is_used_up())
        note_death_before_ready();
    if (is_broken_)
        end_calls(call_end::broken);
    go_on(now);
}

/// The last of so many in a row. While others serve on, the next attempts are counted anew.
void dispatcher::note_death_before_ready() {
    starts_ = {true, damper_.deaths()};
    refuse_recycling();
    is_broken_ = ready() == 0;
    if (!is_broken_)
        damper_.forget_deaths();
}

/// How many workers will be there if nothing happens.
int dispatcher::staying() const {
    return static_cast<int>(std::ranges::count_if(workers_, [&](const auto& w) {
        return w.second.state != worker_state::stopping && !w.second.retires && !is_extra(w.first);
    }));
}

/// Lets go of those that nobody needs.
void dispatcher::shrink(time_point now) {
    const bool is_over = phase_ == phase::stopping || (phase_ == phase::draining && calls_.empty());
    if (is_over)
        for (auto& [id, of] : workers_) {
            if (of.state == worker_state::idle)
                retire(id, of);
            else if (of.state == worker_state::starting)
                stop_worker(id, of, true, std::nullopt);
        }
    while (is_open() && !idle_.empty() && staying() > rules_.at_least) {
        const worker_id oldest = idle_.front();
        worker& of = workers_.at(oldest);
        if (later(of.since, rules_.idle) > now)
            return;
        retire(oldest, of);
    }
}

// --- recycling ---

void dispatcher::measured(worker_id id, std::uint64_t added, time_point now) {
    const auto found = workers_.find(id);
    if (found == workers_.end() || found->second.most_memory == 0 ||
        added < found->second.most_memory)
        return;
    found->second.is_due = true;
    go_on(now);
}

/// Replaces one worker at a time: its successor is started first, so that no call waits for that.
void dispatcher::recycle_next(time_point now) {
    if (recycling_.slot && (!renews() || is_used(*recycling_.slot)))
        recycling_ = {};
    if (recycling_.slot && !is_broken_ && may_start(now)) {
        const int slot = *std::exchange(recycling_.slot, std::nullopt);
        counts_.replaced += lost_slots_.erase(slot);
        recycling_.successor = start(slot, now);
    }
    const auto due = next_due();
    if (!due || (rules_.overlap && !may_start(now)))
        return;
    recycling_.old = due;
    worker& old = workers_.at(*due);
    if (rules_.overlap)
        recycling_.successor = start(old.slot, now);
    else
        retire(*due, old);
}

/// Whether workers are still replaced.
bool dispatcher::renews() const noexcept {
    return is_open() || (phase_ == phase::draining && !calls_.empty());
}

/// The worker that is to be recycled now.
std::optional<worker_id> dispatcher::next_due() const {
    if (!renews() || is_broken_ || recycling_.old || recycling_.successor || recycling_.slot)
        return std::nullopt;
    const auto due = std::ranges::find_if(workers_, [this](const auto& each) {
        const worker& of = each.second;
        return of.is_due && !of.retires &&
               (of.state == worker_state::idle ||
                (rules_.overlap && of.state == worker_state::running));
    });
    return due == workers_.end() ? std::nullopt : std::optional(due->first);
}

/// The next one is recycled when the old worker is gone, and its successor is ready. Without
/// overlap the successor starts then, and again if it dies; with overlap the old worker serves on.
void dispatcher::note_end_in_recycling(worker_id id, const worker& of) {
    if (recycling_.old != id && recycling_.successor != id)
        return;
    recycling_ = {};
    if (!rules_.overlap && of.slot < rules_.size)
        recycling_.slot = of.slot;
}

}  // namespace cohort::pools
