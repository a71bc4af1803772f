// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "hosts/link/remote_part.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace hosts_link_test {

using namespace cohort::multihost;
using namespace std::chrono_literals;
using part_does = part_action::kind;
using part_hears = part_event::kind;

inline constexpr time_point part_zero{1h};
inline constexpr duration part_timeout = 10s;

/// A part and the facts that hold whatever happens to it.
class watched_part {
public:
    explicit watched_part(std::size_t workers) : part(workers, part_timeout), ended_(workers) {}

    std::vector<part_action> on(const part_event& e, time_point now) {
        const auto before = part;
        const auto todo = part.on(e, now);
        for (std::size_t i = 0; i < todo.size(); ++i) {
            const bool last = i + 1 == todo.size();
            look(before, e, todo[i], last);
        }
        demand(!before.is_over() || todo.empty(), "nothing is done after the end");
        demand(part.current() >= before.current(), "no way leads back");
        demand(part.is_over() == (closed_ == 1), "the end and its action are one");
        demand((part.current() == part_state::lost) == (lost_ == 1), "a loss is told once");
        demand((part.current() == part_state::lost) == part.loss().has_value(),
               "a loss has a reason");
        const bool is_awaited = part.current() == part_state::stopping || all_ended();
        demand(part.deadline().has_value() == (is_awaited && !part.is_over()),
               "who stops, and who has nobody left, has a deadline, nobody else");
        demand(!before.deadline() || !part.deadline() || *part.deadline() <= *before.deadline() ||
                   now >= *before.deadline() + 1s,
               "a deadline that is seen in time never moves to a later one");
        demand(!ends_link(e.what) || part.is_over(), "the end of the link is the end");
        for (std::size_t i = 0; i < ended_.size(); ++i)
            demand(part.has_ended(i) == (ended_[i] == 1), "it knows who has ended");
        return todo;
    }

    bool has_sent(part_does what) const { return count_[index(what)] > 0; }
    bool all_ended() const { return std::ranges::count(ended_, 1) == std::ssize(ended_); }

    remote_part part;
    const char* broken = nullptr;  // the first fact that did not hold

private:
    static std::size_t index(part_does what) { return static_cast<std::size_t>(what); }
    static bool ends_link(part_hears e) {
        return e == part_hears::left || e == part_hears::cut || e == part_hears::silent ||
               e == part_hears::broken;
    }
    void demand(bool holds, const char* fact) {
        if (!holds && broken == nullptr)
            broken = fact;
    }
    bool once(part_does what) { return count_[index(what)] == 1; }

    void look(const remote_part& before, const part_event& e, const part_action& a, bool last) {
        ++count_[index(a.what)];
        demand(!has_sent(part_does::close) || (last && a.what == part_does::close),
               "close is the last action");
        const bool first_sent =
            a.what == part_does::send_start || !sends(a.what) || has_sent(part_does::send_start);
        demand(first_sent, "nothing is sent before the start");
        switch (a.what) {
        case part_does::send_start:
            demand(once(a.what) && before.current() == part_state::reached, "it starts once");
            break;
        case part_does::send_gate:
            demand(once(a.what) && has_sent(part_does::report_started) &&
                       !has_sent(part_does::send_stop),
                   "the gate opens once, after the start, and not after a stop");
            break;
        case part_does::send_stop:
            demand(e.what == part_hears::stop, "a stop is asked for");
            break;
        case part_does::send_leave:
            demand(once(a.what), "it leaves once");
            demand(part.current() == part_state::reported, "a lost agent is told nothing");
            demand(has_sent(part_does::report_not_started) || all_ended(),
                   "nobody is alive after the last report");
            break;
        case part_does::report_started:
        case part_does::report_not_started:
            demand(count_[index(part_does::report_started)] +
                           count_[index(part_does::report_not_started)] ==
                       1,
                   "a start has one end");
            break;
        case part_does::report_ended:
            demand(++ended_.at(a.worker) == 1, "each end is told once");
            demand(e.what == part_hears::ended && e.worker == a.worker, "the agent has said it");
            break;
        case part_does::report_lost:
            ++lost_;
            break;
        case part_does::close:
            ++closed_;
            break;
        }
    }
    static bool sends(part_does what) { return what <= part_does::send_leave; }

    std::vector<int> ended_;
    int count_[9] = {};
    int lost_ = 0;
    int closed_ = 0;
};

}  // namespace hosts_link_test
