// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "group/border/create_group.hpp"
#include "hosts/connection/agent_streams.hpp"
#include "hosts/connection/origin_streams.hpp"
#include "loop/runtime/runtime.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"

#include <cohort/command.hpp>
#include <cohort/options.hpp>
#include <cohort/sinks.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// Both ends of a group's streams in one process, with a queue of messages between them instead of
/// a link.
namespace hosts_streams_test {

using namespace cohort;
using namespace cohort::multihost;
using namespace std::chrono_literals;

/// The threads of a runtime stay. Under TSan no copy of a program with threads may start one, as
/// copies in later cases do.
inline bool would_leave_threads() {
    if (test::under_tsan)
        test::skip("its threads would stay, and later cases make copies that start threads");
    return test::under_tsan;
}

/// Stands for a context's operations.
class operations final : public detail::completion_sink {
public:
    detail::delivery complete(detail::operation_id id,
                              const detail::completion& result) noexcept override {
        const std::lock_guard lock(mutex_);
        results_[id] = result;
        changed_.notify_all();
        return detail::delivery::posted;
    }
    /// Waits until the operation is completed.
    detail::completion result(detail::operation_id id) {
        std::unique_lock lock(mutex_);
        REQUIRE(changed_.wait_for(lock, 60s, [&] { return results_.contains(id); }));
        return std::exchange(results_[id], {});
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<detail::operation_id, detail::completion> results_;
};

inline detail::spawn_plan plan_of(const options& how, const command& work) {
    detail::spawn_plan plan;
    plan.settings = detail::options_access::settings(how);
    detail::add_program(plan, detail::command_access::program(work));
    return plan;
}

/// A group whose workers are at a host and whose streams are read here.
class far_pair {
public:
    /// @param holds_back  credits of streams and groups do not get to the host
    explicit far_pair(const options& how, const command& work, bool holds_back = false)
        : group(detail::create_group_at_host(plan_of(how, work))), holds_back_(holds_back) {
        auto names = output::route_names{"group", "", "abcdefgh", "/"};
        const auto plan = plan_of(how, work);
        here = detail::make_streams(runtime, plan, names, output::routes_of::origin);
        output::base_directories bases(-1);
        REQUIRE_FALSE(here->prepare(bases));
        const auto there = detail::streams_of(group);
        agent = std::make_shared<agent_streams>(there, [this](frame_kind kind, auto body) {
            carry([this] { return origin; }, kind, std::move(body));
        });
        const worker_range all{0, static_cast<int>(here->routes().workers.size())};
        origin = std::make_shared<origin_streams>(here, all, [this](frame_kind kind, auto body) {
            if (!holds_back_ || kind != frame_kind::data_credit)
                carry([this] { return agent; }, kind, std::move(body));
        });
        agent->begin();
        at_output([&] { origin->begin(); });
    }
    far_pair(const far_pair&) = delete;
    far_pair& operator=(const far_pair&) = delete;
    ~far_pair() {
        at_output([&] {
            agent->close();
            origin->over();
            here->group_ended();
        });
        at_output([] {});
    }

    void start() {
        const auto id = detail::next_operation_id();
        detail::start_group(group, {calls, id});
        CHECK(calls->result(id).what == detail::completion::kind::done);
    }
    /// Waits for the workers' end, then until all they wrote is here. @return how long the latter
    /// has taken
    std::chrono::steady_clock::duration end() {
        const auto id = detail::next_operation_id();
        detail::await_end(group, std::nullopt, {calls, id});
        (void)calls->result(id);
        const auto from = std::chrono::steady_clock::now();
        std::promise<void> sent;
        at_output([&] { agent->when_sent([&] { sent.set_value(); }); });
        REQUIRE(sent.get_future().wait_for(60s) == std::future_status::ready);
        at_output([] {});  // what was posted before
        const auto lasted = std::chrono::steady_clock::now() - from;
        at_output([&] {
            origin->over();
            here->group_ended();
        });
        return lasted;
    }
    /// All lines until the last stream ends.
    std::vector<output_line> read() {
        std::vector<output_line> all;
        for (;;) {
            const auto lines = read_some();
            if (!lines)
                return all;
            for (auto& line : detail::lines_of(*lines))
                all.push_back(std::move(line));
        }
    }
    std::shared_ptr<const detail::line_batch> read_some() {
        const auto id = detail::next_operation_id();
        here->await_lines({calls, id}, detail::amount::all, std::nullopt);
        return calls->result(id).lines;
    }
    detail::operation_id write(int index, std::string text) {
        const auto id = detail::next_operation_id();
        here->write(index, std::move(text), {calls, id});
        return id;
    }

    void at_output(const std::function<void()>& what) {
        std::promise<void> done;
        runtime.output().post([&] {
            what();
            done.set_value();
        });
        REQUIRE(done.get_future().wait_for(60s) == std::future_status::ready);
    }

    loop::runtime& runtime = loop::runtime::for_spawn();
    std::shared_ptr<operations> calls = std::make_shared<operations>();
    detail::group_ref group;
    std::shared_ptr<output::group_streams> here;
    std::shared_ptr<agent_streams> agent;
    std::shared_ptr<origin_streams> origin;
    std::optional<breach> broken;  // the output thread's

private:
    void carry(const auto& end, frame_kind kind, std::vector<std::byte> body) {
        auto what = std::make_shared<message>(message{{kind, 1}, std::move(body)});
        runtime.output().post([this, to = end(), what] {
            if (const auto how = to->heard(*what))
                broken = how;
        });
    }

    const bool holds_back_;
};

inline command shell(const std::string& script) { return command("sh", "-c", script); }

}  // namespace hosts_streams_test
