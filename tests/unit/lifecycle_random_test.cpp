// SPDX-License-Identifier: BSL-1.0
#include "group/lifecycle/machine.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace lifecycle_random_test {

using namespace cohort::groups;
using namespace std::chrono_literals;

// 100,000 lives of groups, each from a seed of its own: what must hold in every one of them.

namespace {

constexpr int lives = 100'000;

class dice {
public:
    explicit dice(unsigned seed) : engine_(seed) {}
    int below(int n) { return static_cast<int>(engine_() % static_cast<unsigned>(n)); }
    bool one_in(int n) { return below(n) == 0; }
    duration length() {
        const duration some[] = {0s, 0s, 1ns, 1s, 7s, 30s, duration::max()};
        return some[below(7)];
    }
    rules some_rules() {
        const auto policy =
            one_in(3) ? cohort::on_failure::keep_going : cohort::on_failure::stop_all;
        rules r{length(), length(), length(), policy};
        if (one_in(2))
            r.time_limit = length();
        return r;
    }

private:
    std::minstd_rand engine_;
};

/// A machine and the facts that hold whatever is done to it.
class watched_machine {
public:
    watched_machine(const rules& r, time_point now, int waiting = 0)
        : m(r, waiting), has_limit_(r.time_limit) {
        m.begin(now);
    }

    std::vector<action> on(event e, time_point now) {
        const machine before = m;
        const std::vector<action> todo = m.on(e, now);
        history += std::string(to_string(e)) + " ";
        for (const action a : todo)
            history += std::string("[") + to_string(a) + "] ";
        check_actions(before, todo);
        check_times(before);
        return todo;
    }

    void demand(bool holds, const char* fact) {
        if (!holds && broken.empty())
            broken = std::string(fact) + " | " + history;
    }

    machine m;
    std::string broken;  // the first fact that did not hold, and what led there

private:
    void check_actions(const machine& before, const std::vector<action>& todo) {
        const auto count = [&](action a) { return std::count(todo.begin(), todo.end(), a); };
        demand(std::adjacent_find(todo.begin(), todo.end(), std::greater_equal<>()) == todo.end(),
               "actions come in their order, none twice");
        demand(before.current() != state::ended || todo.empty(), "nothing is done after the end");
        demand(m.current() >= before.current(), "no way leads back");
        holds_ += static_cast<int>(count(action::hold_start));
        reports_ += static_cast<int>(count(action::report_end));
        demand(holds_ <= 1 && reports_ <= 1, "hold_start and report_end come once at most");
        demand((reports_ == 1) == (m.current() == state::ended), "the end and its report are one");
        demand(m.current() != state::ended ||
                   (m.live() == 0 && m.start_is_over() && m.waiting() == 0),
               "nobody is alive, waits or is being started at the end");
        demand(m.waiting() >= 0, "waiting is never negative");
        demand(m.live() >= 0, "live is never negative");
        demand(m.time_is_up() || !m.timed_out(), "nothing times out before its time is up");
        demand(!before.stop_was_asked() || before.time_is_up() == m.time_is_up(),
               "a group that is being stopped has no time limit");
        demand(!m.time_is_up() || m.current() >= state::stopping, "a group stops in time");
        demand(m.start_is_over() || m.current() != state::running, "who starts does not run");
        demand(!m.start_is_over() || m.live() > 0 || m.waiting() > 0 || m.current() == state::ended,
               "the last one to end ends the group");
    }

    void check_times(const machine& before) {
        const bool on_the_ladder = m.current() == state::noticing ||
                                   m.current() == state::stopping || m.current() == state::killing;
        if (m.deadline())
            demand(on_the_ladder || (m.current() < state::noticing && has_limit_),
                   "only steps of the ladder and time limits have deadlines");
        else
            demand(!on_the_ladder ||
                       (m.current() == state::killing && (!m.start_is_over() || m.waiting() > 0)),
                   "without a deadline only the ends of starts are waited for");
        if (m.current() == before.current() && before.deadline() && m.deadline())
            demand(*m.deadline() == *before.deadline(), "a step keeps its deadline");
    }

    bool has_limit_;
    std::string history;
    int holds_ = 0;
    int reports_ = 0;
};

/// A group that keeps the machine's contract: it has workers, and starts one at a time.
class simulated_group {
public:
    explicit simulated_group(unsigned seed)
        : roll_(seed), waiting_(roll_.below(5)), machine_(roll_.some_rules(), now_, waiting_) {
        to_start_ = roll_.below(6);
    }

    /// Lives through random events, then is stopped while nobody obeys and a start hangs.
    /// Says which fact did not hold.
    std::string live() {
        for (int left = roll_.below(40); left > 0 && !over(); --left)
            random_event();
        answers_at_once_ = true;
        hand_in(event::stop_asked);
        int deadlines = 0;
        for (; !over() && machine_.m.deadline() && deadlines < 10; ++deadlines) {
            now_ = std::max(now_, *machine_.m.deadline());
            hand_in(event::deadline);
        }
        machine_.demand(over(), "a stopped group ends");
        machine_.demand(deadlines <= 3, "a stop has no more deadlines than the ladder has steps");
        return machine_.broken;
    }

private:
    struct worker {
        bool told_to_stop = false;
        bool killed = false;
    };

    bool over() const { return machine_.m.current() == state::ended; }

    void random_event() {
        now_ += roll_.one_in(4) ? 1s : 1ms;
        const int kind = roll_.below(10);
        if (kind < 4 && !start_over_)
            go_on_starting();
        else if (kind < 4 && waiting_ > 0)
            start_later();
        else if (kind < 7 && !workers_.empty())
            one_ends();
        else if (kind == 7 && roll_.one_in(4))
            hand_in(event::stop_asked);
        else if (kind >= 8)
            let_time_pass();
    }

    void go_on_starting() {
        if (in_flight_ && roll_.one_in(10)) {
            start_over_ = true;
            hand_in(event::start_failed);
        } else if (in_flight_) {
            in_flight_ = false;
            --to_start_;
            workers_.push_back({});
            hand_in(event::worker_started);
        } else if (held_ || to_start_ == 0) {
            start_over_ = true;
            hand_in(event::start_finished);
        } else {
            in_flight_ = true;
        }
    }

    void start_later() {
        --waiting_;
        if (roll_.one_in(4))
            return hand_in(event::worker_not_started);
        workers_.push_back({});
        hand_in(event::worker_started);
    }

    void one_ends() {
        workers_.erase(workers_.begin() + roll_.below(static_cast<int>(workers_.size())));
        if (!held_ && roll_.one_in(4)) {
            ++waiting_;
            return hand_in(event::worker_restarts);
        }
        hand_in(roll_.one_in(2) ? event::worker_failed : event::worker_ended_well);
    }

    void let_time_pass() {
        const auto until = machine_.m.deadline();
        if (until && *until != time_point::max() && roll_.one_in(2))
            now_ = std::max(now_, *until);
        hand_in(event::deadline);
    }

    void hand_in(event e) {
        for (const action a : machine_.on(e, now_))
            perform(a);
        check_workers();
        // One may just be started: it is in time for the signals that follow.
        if (held_ && start_over_ && waiting_ > 0 && !given_up_ && roll_.one_in(2)) {
            --waiting_;
            workers_.push_back({});
            hand_in(event::worker_started);
        }
        while (held_ && waiting_ > 0 && !over()) {
            --waiting_;
            hand_in(event::worker_dropped);
        }
        if (given_up_ && !start_over_ && (answers_at_once_ || roll_.one_in(2))) {
            start_over_ = true;
            hand_in(event::start_failed);
        }
    }

    void perform(action a) {
        machine_.demand(a == action::report_end || !workers_.empty() || !start_over_ ||
                            waiting_ > 0,
                        "there is somebody to do it to");
        machine_.demand(a != action::hold_start || !start_over_ || waiting_ > 0,
                        "there is a start to hold");
        held_ = held_ || a == action::hold_start;
        for (worker& w : workers_) {
            w.told_to_stop = w.told_to_stop || a == action::send_stop_signal;
            w.killed = w.killed || a == action::send_kill;
        }
        if (a == action::give_up) {
            machine_.demand(std::all_of(workers_.begin(), workers_.end(), killed),
                            "nobody is given up who was not killed");
            workers_.clear();
            given_up_ = true;
        }
    }

    void check_workers() {
        const auto all = [&](auto what) {
            return std::all_of(workers_.begin(), workers_.end(), what);
        };
        const state now = machine_.m.current();
        machine_.demand(machine_.m.live() == static_cast<int>(workers_.size()),
                        "it counts the workers");
        machine_.demand(now != state::stopping || all(told_to_stop),
                        "in `stopping` all have the stop signal");
        machine_.demand(now != state::killing || all(killed), "in `killing` all have SIGKILL");
        machine_.demand(now > state::noticing ||
                            all([](const worker& w) { return !w.told_to_stop && !w.killed; }),
                        "before `stopping` nobody has a signal");
        machine_.demand(now >= state::killing || all([](const worker& w) { return !w.killed; }),
                        "before `killing` nobody has SIGKILL");
    }

    static bool told_to_stop(const worker& w) { return w.told_to_stop; }
    static bool killed(const worker& w) { return w.killed; }

    dice roll_;
    time_point now_ = time_point{} + 1h;
    int waiting_;
    watched_machine machine_;
    std::vector<worker> workers_;
    int to_start_ = 0;
    bool in_flight_ = false;
    bool held_ = false;
    bool start_over_ = false;
    bool given_up_ = false;
    bool answers_at_once_ = false;
};

/// Any event at any time, also such as can't be; then the stop, its deadlines and the end of the
/// start.
std::string live_against_the_contract(unsigned seed) {
    dice roll(seed);
    watched_machine machine(roll.some_rules(), time_point{});
    for (int left = roll.below(40); left > 0; --left) {
        const time_point any = time_point{} + std::chrono::seconds(roll.below(200) - 100);
        machine.on(static_cast<event>(roll.below(10)), any);
    }
    machine.on(event::stop_asked, time_point{} + 200s);
    int needed = 0;
    for (; machine.m.current() != state::ended && needed < 10; ++needed) {
        if (const auto until = machine.m.deadline())
            machine.on(event::deadline, *until);
        else if (machine.m.waiting() > 0 && machine.m.start_is_over())
            for (int left = machine.m.waiting(); left > 0; --left)
                machine.on(event::worker_dropped, time_point{} + 200s);
        else
            machine.on(event::start_failed, time_point{} + 200s);
    }
    machine.demand(needed <= 5,
                   "the steps of the ladder and the end of the start are all that is left");
    return machine.broken;
}

}  // namespace

TEST_CASE("lifecycle random: any sequence of events ends the group once and in bounded time") {
    for (unsigned seed = 1; seed <= lives; ++seed) {
        const std::string broken = simulated_group(seed).live();
        if (!broken.empty()) {
            CAPTURE(seed);
            FAIL(broken);
        }
    }
}

TEST_CASE("lifecycle random: events that can't be break nothing") {
    for (unsigned seed = 1; seed <= lives; ++seed) {
        const std::string broken = live_against_the_contract(seed);
        if (!broken.empty()) {
            CAPTURE(seed);
            FAIL(broken);
        }
    }
}

}  // namespace lifecycle_random_test
