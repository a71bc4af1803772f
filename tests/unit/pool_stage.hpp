// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "pool/dispatch/dispatcher.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace cohort::test {

using namespace cohort::pools;
using namespace std::chrono_literals;

inline constexpr time_point start_time{1h};

/// Plays the workers, and checks what the dispatcher orders.
class stage {
public:
    explicit stage(const rules& r, std::uint32_t seed = 1) : rules_(r), machine(r, seed) {
        most_ = r.size;
        machine.begin(now);
        look();
    }

    call_id submit(std::optional<duration> wait = {}, std::optional<duration> run = {}) {
        machine.submit(++last_call_, wait, run, now);
        asked_.insert(last_call_);
        look();
        return last_call_;
    }
    void cancel(call_id call, bool stops) {
        machine.cancel(call, stops, now);
        look();
    }
    void ready(worker_id w) {
        machine.ready(w, now);
        look();
    }
    void finish(worker_id w, bool failed = false) {
        has_call_.erase(w);
        machine.finished(w, failed, now);
        look();
    }
    void refuse(worker_id w) {
        const auto call = has_call_.at(w);
        has_call_.erase(w);
        sent_.erase(call);
        machine.not_taken(w, now);
        look();
    }
    void die(worker_id w) {
        live_.erase(w);
        has_call_.erase(w);
        machine.died(w, now);
        look();
    }
    void pass(duration time) {
        now += time;
        machine.on_time(now);
        look();
        REQUIRE((!machine.deadline() || *machine.deadline() > now));  // else it spins
    }
    /// Waits until the next deadline.
    bool pass_to_deadline() {
        const auto at = machine.deadline();
        if (!at)
            return false;
        now = std::max(now, *at);
        machine.on_time(now);
        look();
        REQUIRE((!machine.deadline() || *machine.deadline() > now));  // else it spins
        return true;
    }
    request_id recycle() {
        machine.recycle(++last_request_, now);
        look();
        return last_request_;
    }
    request_id resize(int size) {
        most_ = std::max(most_, size);
        machine.resize(++last_request_, size, now);
        look();
        return last_request_;
    }
    request_id drain() {
        machine.drain(++last_request_, now);
        look();
        return last_request_;
    }
    request_id stop() {
        machine.stop(++last_request_, now);
        look();
        return last_request_;
    }
    void drop() {
        machine.drop(now);
        look();
    }
    void measure(worker_id w, std::uint64_t added) {
        machine.measured(w, added, now);
        look();
    }

    /// Those that were started and have not died, with their slots.
    const std::map<worker_id, int>& live() const { return live_; }
    const std::map<worker_id, call_id>& calls() const { return has_call_; }
    const std::map<call_id, call_end>& ends() const { return ends_; }
    const std::set<worker_id>& told_to_end() const { return told_to_end_; }
    bool granted(request_id r) const { return granted_.contains(r); }
    bool refused(request_id r) const { return refused_.contains(r); }
    std::optional<call_end> end_of(call_id call) const {
        const auto found = ends_.find(call);
        return found == ends_.end() ? std::nullopt : std::optional(found->second);
    }
    bool all_ended() const { return ends_.size() == asked_.size(); }

    time_point now = start_time;

private:
    rules rules_;

public:
    dispatcher machine;

private:
    void look() {
        for (const auto& each : machine.take_orders()) {
            switch (each.what) {
            case order::kind::start:
                REQUIRE(live_.emplace(each.worker, each.slot).second);
                REQUIRE(each.slot >= 0);
                REQUIRE(each.slot < most_);
                break;
            case order::kind::send:
                REQUIRE(live_.contains(each.worker));
                REQUIRE_FALSE(told_to_end_.contains(each.worker));
                REQUIRE(has_call_.emplace(each.worker, each.call).second);
                REQUIRE(sent_.insert(each.call).second);  // at most once
                REQUIRE_FALSE(ends_.contains(each.call));
                break;
            case order::kind::stop:
            case order::kind::retire:
                REQUIRE(live_.contains(each.worker));
                if (each.what == order::kind::retire)
                    REQUIRE_FALSE(has_call_.contains(each.worker));
                told_to_end_.insert(each.worker);
                break;
            case order::kind::complete:
                REQUIRE(asked_.contains(each.call));
                REQUIRE(ends_.emplace(each.call, each.how).second);  // once
                break;
            case order::kind::grant:
                REQUIRE(granted_.insert(each.request).second);
                break;
            case order::kind::refuse:
                REQUIRE_FALSE(granted_.contains(each.request));
                REQUIRE(refused_.insert(each.request).second);
                break;
            }
        }
        std::map<int, int> in_slot;
        for (const auto& [id, slot] : live_)
            ++in_slot[slot];
        int doubled = 0;
        for (const auto& [slot, count] : in_slot) {
            REQUIRE(count <= 2);
            doubled += count - 1;
        }
        REQUIRE(doubled <= (rules_.overlap ? 1 : 0));
        if (machine.idle() > 0)
            REQUIRE(machine.waiting() == 0);
    }

    int most_;
    call_id last_call_ = 0;
    request_id last_request_ = 0;
    std::map<worker_id, int> live_;
    std::map<worker_id, call_id> has_call_;
    std::set<worker_id> told_to_end_;
    std::set<call_id> asked_, sent_;
    std::map<call_id, call_end> ends_;
    std::set<request_id> granted_, refused_;
};

inline worker_id first_of(const stage& on) { return on.live().begin()->first; }

}  // namespace cohort::test
