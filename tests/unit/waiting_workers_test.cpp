// SPDX-License-Identifier: BSL-1.0
// The workers of a group that wait for a start while the group is stopped.
#include "group/state/waiting_workers.hpp"
#include "loop/runtime/runtime.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"
#include "sys_support.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace waiting_workers_test {

using namespace cohort;
using namespace cohort::test;
using namespace std::chrono_literals;

namespace {

constexpr int many = 2000;
constexpr int most_at_once = 500;

detail::group_settings settings_of(restart_scope scope) {
    detail::group_settings settings;
    settings.nprocs = many;
    settings.restarts.emplace();
    settings.restarts->most = 1 << 20;
    settings.restarts->first_pause = settings.restarts->longest_pause = 24h;
    settings.restarts->scope = scope;
    return settings;
}

/// A group of `many` workers without processes. Used on the engine's thread.
class stopped_group : public std::enable_shared_from_this<stopped_group>,
                      private groups::waiting_workers::listener,
                      private groups::start_in_progress::listener {
public:
    explicit stopped_group(restart_scope scope)
        : settings_(std::make_shared<const detail::group_settings>(settings_of(scope))) {}

    void begin() { workers_.begin(weak_from_this()); }
    void end(int index, bool success) {
        outcome of;
        of.index = index;
        of.started = of.ended = loop_.now();
        groups::verdict judged;
        judged.success = success;
        (void)workers_.ended(of, judged);
    }
    void leave_nothing(int index) { workers_.left_nothing(index); }
    /// How many of those that had ended well start again.
    int joined() const { return joined_; }
    /// Each time that the loop turns to something else, `between` is called.
    void call_between(std::function<void()> between) { between_ = std::move(between); }
    /// How many do not wait any more: each is told once.
    int gone() const { return static_cast<int>(dropped_.size()) + well_; }
    void stop() {
        workers_.drop([this](int index) {
            if (!dropped_.insert(index).second)
                std::abort();
            went();
        });
    }

private:
    bool has_room_for(int) override { return true; }
    void stop_workers_to_restart() override {}
    void well_ended_workers_restart(const std::vector<int>& indices) override {
        joined_ += static_cast<int>(indices.size());
        went();
    }
    void well_ended_worker_stays() override {
        ++well_;
        went();
    }
    void worker_started(groups::start_report) override {}
    void worker_not_started(int, const detail::start_failure*, bool) override {}
    void start_hangs() override {}
    void has_cgroup(std::shared_ptr<start::group_cgroup>) override {}
    void start_is_over(const detail::start_failure*) override {}
    void given_up_start_has_ended() override {}
    void operation_waits_for_end(detail::receiver) override {}
    void go_on_ending() override {}

    /// Something else has asked for the loop meanwhile, as another group does.
    void went() {
        if (std::exchange(is_asked_, true))
            return;
        loop_.post([self = shared_from_this()] {
            self->is_asked_ = false;
            self->between_();
        });
    }

    loop::runtime& runtime_ = loop::runtime::for_spawn();
    loop::engine& loop_ = runtime_.loop();
    std::shared_ptr<const detail::group_settings> settings_;
    groups::ending ending_;
    groups::start_in_progress start_{runtime_, settings_, ending_, *this, nullptr};
    groups::machine life_{groups::rules()};
    groups::snapshot shown_{many};
    groups::waiting_workers workers_{loop_, *settings_, start_, life_, shown_, *this};
    std::function<void()> between_;
    bool is_asked_ = false;
    std::set<int> dropped_;
    int well_ = 0;
    int joined_ = 0;
};

/// Calls this for a group on the engine's thread.
template <class Play>
auto steps_of(restart_scope scope, Play play) {
    auto answer = std::make_shared<std::promise<std::vector<int>>>();
    auto answered = answer->get_future();
    loop::runtime::for_spawn().loop().post([=] {
        const auto group = std::make_shared<stopped_group>(scope);
        group->begin();
        play(*group, answer);
    });
    return answered.get();
}

/// Sees `count` each time that the loop did something else, until all had gone or come.
void note_until(int all, int (stopped_group::*count)() const, stopped_group& group,
                std::shared_ptr<std::promise<std::vector<int>>> answer) {
    auto seen = std::make_shared<std::vector<int>>();
    group.call_between([&group, all, count, seen, answer] {
        seen->push_back((group.*count)());
        if (seen->back() == all)
            answer->set_value(*seen);
    });
}

std::vector<int> steps_of_stop(restart_scope scope, bool success) {
    return steps_of(scope, [success](stopped_group& group, auto answer) {
        for (int index = 0; index < many; ++index)
            group.end(index, success);
        for (int index = 0; index < many; index += 2)
            group.leave_nothing(index);
        note_until(many, &stopped_group::gone, group, answer);
        group.stop();
        for (int index = 1; index < many; index += 2)
            group.leave_nothing(index);
    });
}

std::vector<int> steps_of_round() {
    return steps_of(restart_scope::all, [](stopped_group& group, auto answer) {
        note_until(many - 1, &stopped_group::joined, group, answer);
        for (int index = 0; index < many; ++index)
            group.end(index, index < many - 1);
    });
}

/// In a copy of this process, because the threads of a runtime stay.
void check_steps(std::function<std::vector<int>()> steps) {
    if (under_tsan)
        return skip(no_threads_in_copies);
    CHECK(in_fork([=] {
              int last = 0;
              for (const int count : steps()) {
                  if (count - last > most_at_once)
                      return 1;
                  last = count;
              }
              return last >= many - 1 ? 0 : 2;
          }) == 0);
}

}  // namespace

TEST_CASE("waiting workers: other groups have turns while thousands of pauses are stopped") {
    check_steps([] { return steps_of_stop(restart_scope::failed, false); });
}

TEST_CASE("waiting workers: other groups have turns while thousands that ended well are dropped") {
    check_steps([] { return steps_of_stop(restart_scope::all, true); });
}

TEST_CASE("waiting workers: other groups have turns while thousands join those that start again") {
    check_steps(steps_of_round);
}

}  // namespace waiting_workers_test
