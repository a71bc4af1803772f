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
    /// How many do not wait any more: each is told once.
    int gone() const { return static_cast<int>(dropped_.size()) + well_; }
    /// Each time that the loop turns to something else, `between` is called.
    void stop(std::function<void()> between) {
        between_ = std::move(between);
        workers_.drop(shared_from_this(), [this](int index) {
            if (!dropped_.insert(index).second)
                std::abort();
            went();
        });
    }

private:
    void stop_workers_to_restart() override {}
    void well_ended_workers_restart(const base::patient_vector<int>&) override {}
    void well_ended_worker_stays() override {
        ++well_;
        went();
    }
    void worker_started(groups::start_report) override {}
    void worker_not_started(int, const detail::start_failure*) override {}
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
};

/// How many had gone each time that the loop did something else, until all had gone.
std::vector<int> steps_of_stop(restart_scope scope, bool success) {
    auto answer = std::make_shared<std::promise<std::vector<int>>>();
    auto answered = answer->get_future();
    loop::runtime::for_spawn().loop().post([=] {
        const auto group = std::make_shared<stopped_group>(scope);
        group->begin();
        for (int index = 0; index < many; ++index)
            group->end(index, success);
        for (int index = 0; index < many; index += 2)
            group->leave_nothing(index);
        auto seen = std::make_shared<std::vector<int>>();
        group->stop([group = group.get(), seen, answer] {
            seen->push_back(group->gone());
            if (group->gone() == many)
                answer->set_value(*seen);
        });
        for (int index = 1; index < many; index += 2)
            group->leave_nothing(index);
    });
    return answered.get();
}

/// In a copy of this process, because the threads of a runtime stay.
void check_steps_of_stop(restart_scope scope, bool success) {
    if (under_tsan)
        return skip(no_threads_in_copies);
    CHECK(in_fork([=] {
              int last = 0;
              for (const int gone : steps_of_stop(scope, success)) {
                  if (gone - last > most_at_once)
                      return 1;
                  last = gone;
              }
              return last == many ? 0 : 2;
          }) == 0);
}

}  // namespace

TEST_CASE("waiting workers: other groups have turns while thousands of pauses are stopped") {
    check_steps_of_stop(restart_scope::failed, false);
}

TEST_CASE("waiting workers: other groups have turns while thousands that ended well are dropped") {
    check_steps_of_stop(restart_scope::all, true);
}

}  // namespace waiting_workers_test
