// SPDX-License-Identifier: BSL-1.0
// All that an attempt of a worker can go through: each state that the machine can reach by its
// public calls, beside a ledger that is written from the promises of its header alone.
#include "crew/life/worker_life.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace worker_life_test {

using namespace cohort::crew;
using namespace std::chrono_literals;

namespace {

constexpr auto tick = 1s;
constexpr int always = 99;  // ticks: longer than a search
constexpr int fact_kinds = 8;
constexpr fact all_facts[fact_kinds] = {fact::begun,  fact::started, fact::not_started,
                                        fact::exited, fact::emptied, fact::completed,
                                        fact::lost,   fact::deadline};

time_point at_tick(int n) { return n >= always ? time_point::max() : time_point(n * tick); }
duration ticks(int n) { return n >= always ? duration::max() : duration(n * tick); }
int later(int now, int by) { return now >= always || by >= always ? always : now + by; }

bool has(const std::vector<action>& todo, action a) {
    return std::ranges::find(todo, a) != todo.end();
}

/// What has really happened to an attempt, and what was done and reported.
struct ledger {
    int rest = 0;
    int now = 0;
    bool begun = false, executed = false, reaped = false, emptied = false, completed = false;
    // Reported:
    bool not_started = false, started = false, exited = false, gone = false, ended = false;
    bool lost = false;
    // Done:
    bool stop_signal = false, kill = false, kill_of_worker = false, gave_up = false;
    std::array<int, 3> due{always, always, always};  // the steps
    int reaped_at = always;
    int stops = 0;

    auto key() const {
        const auto ahead = [&](int when) { return when >= always ? 9 : std::max(when - now, -1); };
        return std::array<int, 22>{begun,         executed,
                                   reaped,        emptied,
                                   completed,     not_started,
                                   started,       exited,
                                   gone,          ended,
                                   lost,          stop_signal,
                                   kill,          kill_of_worker,
                                   gave_up,       stops,
                                   ahead(due[0]), ahead(due[1]),
                                   ahead(due[2]), ahead(later(reaped_at, rest)),
                                   now,           rest};
    }
    bool is_over() const { return not_started || ended || lost; }
    bool lives() const { return started && !exited && !is_over(); }

    state current() const {
        if (is_over())
            return state::over;
        if (gone)
            return state::gone;
        if (exited)
            return gave_up ? state::unkillable : state::exited;
        return started ? state::running : begun ? state::starting : state::requested;
    }
    /// Whether a fact can be true now.
    bool is_possible(fact what) const {
        if (is_over())
            return false;
        switch (what) {
        case fact::begun:
            return !begun;
        case fact::started:
            return begun && !started;
        case fact::not_started:
            return !started;
        case fact::exited:
            return lives();
        case fact::emptied:
            return exited && !gave_up && !gone;
        case fact::completed:
            return exited;
        case fact::lost:
        case fact::deadline:
            return true;
        }
        return false;
    }
    /// -1: none
    int deadline() const {
        int next = always;
        if (!is_over() && !exited) {
            const bool second = started ? stop_signal : was_stopped;
            const bool third = started ? kill_of_worker : kill;
            next = third ? due[2] : second ? due[1] : due[0];
        } else if (current() == state::exited) {
            next = later(reaped_at, rest);
        }
        return next >= always ? -1 : next;
    }
    bool was_stopped = false;  // in its start, where there is nobody to signal

    /// @return the promise that does not hold; "" if all do
    std::string take(const std::vector<action>& todo, fact what, bool acts_on_time) {
        const bool was_over = is_over();
        const bool was_running = lives();
        const bool was_starting = begun && !started && !was_over;
        if (!std::ranges::is_sorted(todo))
            return "the actions are not in their order";
        if (std::ranges::adjacent_find(todo) != todo.end())
            return "an action comes twice";
        if (was_over && !todo.empty())
            return "something is done after the end";
        const bool runs_now = was_running || has(todo, action::report_started);
        if (has(todo, action::send_stop_signal)) {
            if (!runs_now)
                return "the stop signal goes to nobody";
            if (stop_signal)
                return "the stop signal is sent twice";
            if (due[0] > now)
                return "the stop signal comes early";
            stop_signal = true;
        }
        if (has(todo, action::send_kill)) {
            if (!runs_now && !was_starting)
                return "SIGKILL goes to nobody";
            if (kill_of_worker)
                return "SIGKILL is sent twice";
            if (due[1] > now)
                return "SIGKILL comes early";
            kill = true;
            kill_of_worker |= runs_now;
        }
        if (has(todo, action::give_up)) {
            if (!was_running && !was_starting)
                return "nobody is given up";
            if (due[2] > now)
                return "it is given up early";
            gave_up = true;
        }
        if (has(todo, action::report_not_started)) {
            if (started)
                return "one that has started is not started";
            if (what != fact::not_started && !gave_up && (begun || due[0] > now))
                return "it is not started without a reason";
            not_started = true;
        }
        if (has(todo, action::report_started)) {
            if (started || what != fact::started)
                return "it has not started";
            started = true;
        }
        if (has(todo, action::report_exited)) {
            if (!started || exited || (what != fact::exited && !gave_up))
                return "it has not exited";
            exited = true;
            if (!gave_up)
                reaped_at = now;
        }
        if (has(todo, action::report_gone)) {
            if (!exited || gave_up || gone || (!emptied && later(reaped_at, rest) > now))
                return "its place is not free";
            gone = true;
        }
        if (has(todo, action::report_ended)) {
            if (!completed || !(gone || (exited && gave_up)))
                return "it has not ended";
            ended = true;
        }
        if (has(todo, action::report_lost)) {
            if (what != fact::lost)
                return "it is not lost";
            lost = true;
        }
        if (acts_on_time) {
            was_stopped |= due[0] <= now && begun && !started && !is_over();
            if (lives() && due[0] <= now && !stop_signal && !kill_of_worker)
                return "the stop signal does not come";
            if (lives() && due[1] <= now && !kill_of_worker)
                return "SIGKILL does not come";
            if (!is_over() && begun && !started && due[1] <= now && !kill)
                return "SIGKILL of the start does not come";
            if (begun && !is_over() && !exited && due[2] <= now)
                return "it is not given up";
            if (!begun && !is_over() && due[0] <= now)
                return "it waits for its start after its stop";
            if (what == fact::deadline && current() == state::exited &&
                later(reaped_at, rest) <= now)
                return "its place does not become free in time";
        }
        return missing(what);
    }
    std::string missing(fact what) const {
        if (what == fact::started && executed && !started && !is_over())
            return "its start is not reported";
        if (what == fact::not_started && !started && !is_over())
            return "its failed start is not reported";
        if (what == fact::exited && reaped && !exited && !is_over())
            return "its exit is not reported";
        if (emptied && !gave_up && exited && !gone && !is_over())
            return "its free place is not reported";
        if (completed && (gone || (exited && gave_up)) && !is_over())
            return "its end is not reported";
        if (what == fact::lost && !is_over())
            return "its loss is not reported";
        // What was due when it executed reached nobody before.
        if (what == fact::started && started && !is_over() && was_stopped && !stop_signal &&
            !kill_of_worker)
            return "the stop of its start does not reach it";
        return "";
    }
};

struct node {
    worker_life life;
    ledger book;
    std::string path;
};

class search {
public:
    explicit search(int rest) {
        node first{worker_life(ticks(rest)), {}, ""};
        first.book.rest = rest;
        add(std::move(first));
    }
    std::string run() {
        for (std::size_t at = 0; at < nodes_.size() && broken_.empty(); ++at)
            visit(node(nodes_[at]));
        return broken_;
    }
    std::size_t visited() const { return nodes_.size(); }

private:
    static constexpr int last_tick = 5;

    void add(node n) {
        if (seen_.insert(n.book.key()).second)
            nodes_.push_back(std::move(n));
    }
    void check(node& n, const std::vector<action>& todo, fact what, bool acts_on_time) {
        auto wrong = n.book.take(todo, what, acts_on_time);
        const auto shown = n.life.deadline();
        const int deadline = n.book.deadline();
        if (wrong.empty() && n.life.current() != n.book.current())
            wrong = std::string("its state is ") + to_string(n.life.current());
        if (wrong.empty() && (deadline < 0 ? shown.has_value() : shown != at_tick(deadline)))
            wrong = "the deadline is another one";
        if (!wrong.empty() && broken_.empty())
            broken_ = n.path + ": " + wrong;
    }
    void visit(const node& from) {
        for (const fact what : all_facts)
            happen(from, what);
        if (from.book.now < last_tick) {
            node next = from;
            ++next.book.now;
            next.path += " tick";
            add(std::move(next));
        }
        if (from.book.stops < 2)
            for (const int in : {0, 1, 3})
                for (const int grace : {0, 1, always})
                    for (const int kill : {0, 2, always})
                        stop(from, in, grace, kill);
    }
    void happen(const node& from, fact what) {
        node next = from;
        next.path += std::string(" ") + to_string(what);
        auto& book = next.book;
        const bool is_possible = book.is_possible(what);
        if (is_possible) {
            book.begun |= what == fact::begun;
            book.executed |= what == fact::started;
            book.reaped |= what == fact::exited;
            book.emptied |= what == fact::emptied;
            book.completed |= what == fact::completed;
        }
        const auto todo = next.life.on(what, at_tick(book.now));
        if (!is_possible && (!todo.empty() || !(next.life == from.life)) && broken_.empty())
            broken_ = next.path + ": an impossible fact changes something";
        check(next, todo, what, what == fact::deadline);
        add(std::move(next));
    }
    void stop(const node& from, int in, int grace, int kill) {
        node next = from;
        auto& book = next.book;
        next.path += " stop(" + std::to_string(in) + "," + std::to_string(grace) + "," +
                     std::to_string(kill) + ")";
        ++book.stops;
        const int begins = later(book.now, in);
        const std::array<int, 3> wanted{begins, later(begins, grace),
                                        later(later(begins, grace), kill)};
        for (std::size_t i = 0; i < 3; ++i)
            if (!book.exited && !book.is_over())
                book.due[i] = std::min(book.due[i], wanted[i]);
        const auto todo =
            next.life.stop({ticks(grace), ticks(kill)}, at_tick(begins), at_tick(book.now));
        check(next, todo, fact::begun, true);
        add(std::move(next));
    }

    std::vector<node> nodes_;
    std::set<std::array<int, 22>> seen_;
    std::string broken_;
};

}  // namespace

TEST_CASE("worker life: whatever happens, and whenever it is stopped, its promises hold") {
    std::size_t visited = 0;
    for (const int rest : {0, 2, always}) {
        search all(rest);
        CHECK(all.run() == "");
        visited += all.visited();
    }
    CHECK(visited > 20'000);
    MESSAGE(visited);
}

TEST_CASE("worker life: states, facts and actions have names") {
    CHECK(std::string(to_string(state::unkillable)) == "unkillable");
    CHECK(std::string(to_string(state::over)) == "over");
    CHECK(std::string(to_string(fact::deadline)) == "deadline");
    CHECK(std::string(to_string(action::report_lost)) == "report_lost");
}

}  // namespace worker_life_test
