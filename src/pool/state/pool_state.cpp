// SPDX-License-Identifier: BSL-1.0
#include "pool/state/pool_state.hpp"

#include "base/files/dispose.hpp"
#include "output/targets/call_threads.hpp"
#include "protocol/registry/registry.hpp"

#include <cohort/detail/duration.hpp>
#include <cohort/errors.hpp>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

namespace cohort::detail::inline v0_1 {

namespace {

using order_kind = pools::order::kind;

/// Whether workers begin with memory of the fork server, which they share until they change it. A
/// copy of this process shares memory that this process changes, too, which then looks the same.
bool shares_private(const group_settings& s) {
    return s.method == start_method::forkserver && !protocol::preloads().empty();
}

}  // namespace

pool_state::pool_state(std::shared_ptr<const worker_source> workers, const pools::rules& rules,
                       call_settings calls)
    : runtime_(workers->runtime()), workers_(std::move(workers)), first_workers_(workers_),
      settings_(std::move(calls)), shown_(settings_.room),
      dispatcher_(rules, std::random_device()()),
      memory_(runtime_.loop(), rules.memory_per_worker != 0, shares_private(workers_->settings())),
      requests_(runtime_) {
    start_.at_least = std::min(rules.at_least, rules.size);
}

/// What the user gave may be large.
pool_state::~pool_state() {
    base::dispose(std::move(workers_));
    base::dispose(std::move(first_workers_));
    base::dispose(std::move(settings_.initializer.owner));
}

// --- what is asked of the pool ---

void pool_state::begin(receiver to) {
    start_.to = std::move(to);
    memory_.begin(weak_from_this(), [this](worker_id worker, std::uint64_t added) {
        if (const auto link = links_.find(worker); link != links_.end())
            shown_.change(worker, [&](auto& shown) { shown.memory = added; });
        dispatcher_.measured(worker, added, now());
        go_on();
    });
    dispatcher_.begin(now());
    go_on();
}

void pool_state::submit(call submitted) {
    const auto id = submitted.to.id;
    const auto limits = submitted.limits;
    calls_.emplace(id, std::move(submitted));
    dispatcher_.submit(id, limits.wait, limits.run, now());
    go_on();
}

void pool_state::ask(pool_wish wish, std::optional<time_point> until, receiver to) {
    const auto id = to.id;
    if (wish == pool_wish::recycle && !dispatcher_.is_open())
        return void(runtime_.deliver(to, completion_of(completion::kind::aborted)));
    requests_.add(weak_from_this(), std::move(to), until, wish == pool_wish::stop);
    switch (wish) {
    case pool_wish::recycle:
        dispatcher_.recycle(id, now());
        break;
    case pool_wish::drain:
        dispatcher_.drain(id, now());
        break;
    case pool_wish::stop:
        dispatcher_.stop(id, now());
        break;
    }
    go_on();
}

void pool_state::resize(std::shared_ptr<const worker_source> workers, receiver to) {
    if (!dispatcher_.is_open())
        return void(runtime_.deliver(to, completion_of(completion::kind::aborted)));
    const auto id = to.id;
    requests_.add(weak_from_this(), std::move(to), std::nullopt);
    output::call_threads::of(runtime_.loop())
        .run([self = shared_from_this(), workers] { self->empty_files(*workers); },
             [self = shared_from_this(), workers, id]() mutable {
                 self->resize_now(std::move(workers), id);
             });
}

/// Unless the pool or the call has been ended meanwhile.
void pool_state::resize_now(std::shared_ptr<const worker_source> workers, operation_id id) {
    if (!requests_.has(id))
        return;
    if (!dispatcher_.is_open())
        return requests_.finish(id, completion_of(completion::kind::aborted));
    workers_ = std::move(workers);
    dispatcher_.resize(id, workers_->size(), now());
    go_on();
}

void pool_state::cancel(operation_id id, bool stops_worker) {
    if (start_.to && start_.to->id == id) {
        start_.cancelled = true;
        dispatcher_.drop(now());
    } else if (requests_.has(id)) {
        return requests_.finish(id, completion_of(completion::kind::aborted));
    } else {
        dispatcher_.cancel(id, stops_worker, now());
    }
    go_on();
}

void pool_state::release() {
    requests_.abort_wishes();
    dispatcher_.drop(now());
    go_on();
}

// --- what workers do ---

void pool_state::is_ready(worker_id worker) {
    const auto& link = *links_.at(worker);
    shown_.change(worker, [&](auto& shown) { shown.pid = link.pid(); });
    memory_.is_ready(worker, link.pid(), [this, worker] {
        show(worker, worker_state::idle);
        dispatcher_.ready(worker, now());
        go_on();
    });
}

void pool_state::answered(worker_id worker, const pools::frame_name& what, queue_message message) {
    auto& ending = ending_of(worker);
    ending.answer = std::move(message);
    ending.has_thrown = what.kind == pools::frame_kind::raised;
    shown_.change(worker, [](auto& shown) { ++shown.tasks; });
    note_idle(worker);
    memory_.finished(worker);
    dispatcher_.finished(worker, ending.has_thrown, now());
    go_on();
}

void pool_state::not_sent(worker_id worker, std::exception_ptr why) {
    ending_of(worker).error = std::move(why);
    note_idle(worker);
    dispatcher_.finished(worker, true, now());
    go_on();
}

void pool_state::not_taken(worker_id worker, pools::call_id call) {
    if (const auto found = calls_.find(call); found != calls_.end()) {
        found->second.waits = true;
        shown_.begin_wait();
    }
    dispatcher_.not_taken(worker, now());
    go_on();
}

void pool_state::broke(worker_id worker) {
    dispatcher_.broke(worker, now());
    go_on();
}

void pool_state::ended(worker_id worker) {
    const auto found = links_.find(worker);
    const auto link = found->second;
    ending_of(worker).worker = link->how_ended();
    links_.erase(found);
    shown_.forget(worker);
    memory_.ended(worker);
    if (!dispatcher_.was_ready(worker))
        last_death_ = endings_.at(worker);
    dispatcher_.died(worker, now());
    go_on();
}

pools::ended_call& pool_state::ending_of(worker_id worker) {
    auto& ending = endings_[worker];
    ending = std::make_shared<pools::ended_call>();
    const auto& link = *links_.at(worker);
    ending->slot = link.slot();
    ending->pid = link.pid();
    return *ending;
}

/// A worker that is being stopped stays so.
void pool_state::note_idle(worker_id worker) {
    shown_.change(worker, [&](auto& shown) {
        if (shown.state != worker_state::running)
            return;
        shown.state = worker_state::idle;
        shown.function = nullptr;
        shown.since = now();
    });
}

void pool_state::show(worker_id worker, worker_state state, const char* function) {
    shown_.change(worker, [&](auto& shown) {
        shown.state = state;
        shown.function = function;
        shown.since = now();
    });
}

// --- what the dispatcher orders ---

void pool_state::go_on() {
    if (std::exchange(life_.goes_on, true))
        return;  // an order has led to the next event
    const auto self = shared_from_this();
    std::vector<pools::order> orders;
    do {
        orders = dispatcher_.take_orders();
        // Before any call completes, because its user may look at the numbers then.
        shown_.show(dispatcher_, now());
        for (const auto& each : orders)
            perform(each);
    } while (!orders.empty());
    endings_.clear();
    look_at_start();
    set_timer();
    if (links_.empty())
        life_.self.reset();
    life_.goes_on = false;
}

void pool_state::perform(const pools::order& order) {
    const auto link = links_.find(order.worker);
    switch (order.what) {
    case order_kind::start:
        return start(order.worker, order.slot);
    case order_kind::send:
        return send(order);
    case order_kind::stop:
        if (link != links_.end()) {
            show(order.worker, worker_state::stopping);
            link->second->stop();
        }
        return;
    case order_kind::retire:
        if (link != links_.end()) {
            show(order.worker, worker_state::stopping);
            link->second->retire();
        }
        return;
    case order_kind::complete:
        return complete(order);
    case order_kind::grant:
        return requests_.grant(order.request);
    case order_kind::refuse: {
        completion refused = completion_of(completion::kind::failed);
        refused.call = broken();
        return requests_.finish(order.request, refused);
    }
    }
}

void pool_state::start(worker_id worker, int slot) {
    life_.self = shared_from_this();
    auto link = std::make_shared<pools::worker_link>(
        runtime_, static_cast<pools::worker_link::listener&>(*this), worker, slot);
    links_.emplace(worker, link);
    shown_.change(worker, [&](auto& shown) {
        shown.slot = slot;
        shown.since = now();
    });
    const auto made = std::make_shared<pools::worker_link::prepared>();
    output::call_threads::of(runtime_.loop())
        .run(
            [made, slot, workers = workers_, self = shared_from_this()] {
                *made = pools::worker_link::prepare(*workers, slot, self->settings_.initializer);
            },
            [made, link, self = shared_from_this()] { link->begin(std::move(*made)); });
}

void pool_state::send(const pools::order& order) {
    const auto found = calls_.find(order.call);
    const auto link = links_.find(order.worker);
    if (found == calls_.end() || link == links_.end())
        return;
    found->second.waits = false;
    shown_.end_wait();
    show(order.worker, worker_state::running, found->second.function);
    link->second->send(order.call, found->second.packet);
}

void pool_state::look_at_start() {
    if (!start_.to)
        return;
    completion done;
    if (start_.cancelled) {
        if (dispatcher_.live() > 0)
            return;
        done.what = completion::kind::aborted;
    } else if (dispatcher_.has_failed_to_start()) {
        done = completion_of(completion::kind::failed);
        done.call = broken();
    } else if (dispatcher_.ready() < start_.at_least) {
        return;
    }
    runtime_.deliver(*std::exchange(start_.to, std::nullopt), std::move(done));
}

/// If this process was stopped for a while, an answer may lie unread that came in time.
void pool_state::time_has_passed() {
    const auto late = dispatcher_.late(now());
    for (const worker_id id : late)
        if (const auto link = links_.find(id); link != links_.end())
            std::shared_ptr(link->second)->look();
    dispatcher_.on_time(now());
    go_on();
}

void pool_state::set_timer() {
    const auto next = dispatcher_.deadline();
    auto& timer = life_.timer;
    if (timer && (!next || timer->first != *next))
        runtime_.loop().timer().cancel(*std::exchange(timer, std::nullopt));
    if (next && !timer)
        timer = runtime_.loop().timer().at(*next, [weak = weak_from_this()] {
            if (const auto self = weak.lock()) {
                self->life_.timer.reset();
                self->time_has_passed();
            }
        });
}

}  // namespace cohort::detail::inline v0_1
