// SPDX-License-Identifier: BSL-1.0
// The lines of a group between the output thread and the calls of output(), without any worker.
#include "output/streams/line_hub.hpp"

#include "output/streams/stream_sinks.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace line_hub_test {

using namespace std::chrono_literals;
using cohort::stream;
using cohort::when_full;
using cohort::detail::amount;
using cohort::detail::completion;
using cohort::detail::delivery;
using cohort::detail::line_run;
using cohort::detail::operation_id;
using cohort::detail::run_part;
using cohort::loop::runtime;
using cohort::output::line_hub;
using strings = std::vector<std::string>;

namespace {

/// The threads of a runtime stay. Under TSan no copy of a program with threads may start one, as
/// copies in later cases do.
bool would_leave_threads() {
    if (cohort::test::under_tsan)
        cohort::test::skip(
            "its threads would stay, and later cases make copies that start threads");
    return cohort::test::under_tsan;
}

/// Stands for a context's operations: keeps what they complete with.
class told_operations final : public cohort::detail::completion_sink {
public:
    delivery complete(operation_id id, const completion& result) noexcept override {
        const std::lock_guard lock(mutex_);
        if (is_gone)
            return delivery::gone;
        results_[id] = result;
        changed_.notify_all();
        if (then)
            then();
        return delivery::posted;
    }

    bool has(operation_id id) {
        const std::lock_guard lock(mutex_);
        return results_.contains(id);
    }
    /// Waits until the operation is completed.
    completion result(operation_id id) {
        std::unique_lock lock(mutex_);
        CHECK(changed_.wait_for(lock, 60s, [&] { return results_.contains(id); }));
        return std::exchange(results_[id], {});
    }
    /// The texts of the lines that an operation was given, without their newlines.
    strings lines(operation_id id) {
        strings texts;
        const auto done = result(id);
        REQUIRE(done.lines);
        for (const auto& line : lines_of(*done.lines))
            texts.push_back(line.text);
        return texts;
    }

    bool is_gone = false;  // the context was destroyed
    std::function<void()> then;

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<operation_id, completion> results_;
};

std::shared_ptr<const line_run> run_of(const strings& lines) {
    auto run = std::make_shared<line_run>();
    for (const std::string& line : lines) {
        run->text += line + "\n";
        run->lines.push_back({static_cast<std::uint32_t>(line.size() + 1), 1, true});
    }
    return run;
}

/// A hub with one stream, and what the output thread does with it.
class hub_place {
public:
    explicit hub_place(std::size_t bound = 1 << 20) : runtime_(runtime::for_spawn()) {
        runtime_.start_output();
        hub = std::make_shared<line_hub>(runtime_, bound, 0, 1);
    }
    ~hub_place() {
        on_output([](line_hub& h) { h.forget(); });
        on_output([](line_hub&) {});  // the timers of the calls are gone
    }
    hub_place(const hub_place&) = delete;
    hub_place& operator=(const hub_place&) = delete;

    template <class Action>
    void on_output(Action action) {
        auto done = std::make_shared<std::promise<void>>();
        runtime_.output().post([h = hub, done, action] {
            action(*h);
            done->set_value();
        });
        done->get_future().get();
    }
    void add(const strings& lines) {
        on_output([run = run_of(lines)](line_hub& h) { h.add(run, when_full::drop_oldest); });
    }
    void await(operation_id id, amount wanted = amount::one,
               std::optional<std::chrono::milliseconds> timeout = std::nullopt) {
        std::optional<cohort::detail::time_point> until;
        if (timeout)
            until = std::chrono::steady_clock::now() + *timeout;
        hub->await({told, id}, wanted, until);
    }
    /// The next line, if the hub gives it at once.
    std::string take() {
        run_part line;
        return hub->take_line(line) ? line_of(line).text : "-";
    }

    std::shared_ptr<told_operations> told = std::make_shared<told_operations>();
    std::shared_ptr<line_hub> hub;

    runtime& loops() const { return runtime_; }

private:
    runtime& runtime_;
};

/// Takes every turn that it is given, and reads nothing.
class turn_taker final : public cohort::output::stream_reader {
public:
    void begin() override {}
    bool go_on() override {
        turn.set_value();
        return true;
    }
    void worker_ended(cohort::loop::task) override {}
    void look() override {}

    std::promise<void> turn;
};

/// A stream whose worker waits while the hub has no room.
struct waiting_stream {
    std::shared_ptr<turn_taker> reader = std::make_shared<turn_taker>();
    std::shared_ptr<cohort::output::stream_sinks> sinks;

    waiting_stream(const hub_place& place, int index, std::size_t longest = 100) {
        cohort::output::stream_route route;
        route.sinks.push_back(cohort::output::queue_route{when_full::block, longest});
        sinks = std::make_shared<cohort::output::stream_sinks>(
            place.loops().output(), cohort::output::stream_origin{index, 0, stream::out}, route,
            cohort::output::stream_sinks::of_group{
                {}, {}, place.hub, nullptr, std::make_shared<cohort::output::run_pool>()},
            1);
        sinks->set_reader(reader);
    }
    bool gets_turn() const {
        return reader->turn.get_future().wait_for(20s) == std::future_status::ready;
    }
};

}  // namespace

TEST_CASE("line hub: a call takes what is here on its own thread, those that wait come first") {
    if (would_leave_threads())
        return;
    hub_place place;
    CHECK(place.take() == "-");
    place.add({"a", "b", "c"});
    CHECK(place.take() == "a");
    place.await(1);
    CHECK(place.told->has(1));  // on this thread
    CHECK(place.told->lines(1) == strings{"b"});
    CHECK(place.take() == "c");
    place.await(2);
    place.await(3, amount::all);
    CHECK_FALSE(place.told->has(2));
    CHECK(place.take() == "-");
    place.add({"d", "e", "f"});
    CHECK(place.told->lines(2) == strings{"d"});
    CHECK(place.told->lines(3) == strings{"e", "f"});
}

TEST_CASE("line hub: nobody overtakes a call that waits, while an older one is completed") {
    if (would_leave_threads())
        return;
    hub_place place;
    place.await(1);
    place.await(2);
    std::string taken;
    place.told->then = [&] {
        if (taken.empty())
            taken = place.take();
    };
    place.add({"a", "b", "c"});
    place.told->then = {};
    CHECK(taken == "-");
    CHECK(place.told->lines(1) == strings{"a"});
    CHECK(place.told->lines(2) == strings{"b"});
    CHECK(place.take() == "c");
}

TEST_CASE("line hub: it gives many lines at once, but not all") {
    if (would_leave_threads())
        return;
    hub_place place;
    const int count = 200;
    strings lines;
    for (int i = 0; i < count; ++i)
        lines.push_back(std::to_string(i));
    place.add(lines);
    int refused = 0;
    for (const auto& line : lines) {
        auto text = place.take();
        if (text == "-") {
            ++refused;
            place.await(1);
            text = place.told->lines(1).front();
        }
        CHECK(text == line);
    }
    CHECK(refused > 0);
    CHECK(refused <= count / 10);
}

TEST_CASE("line hub: lines for a context that is gone stay, before those that come") {
    if (would_leave_threads())
        return;
    for (const auto wanted : {amount::one, amount::all}) {
        hub_place place;
        place.told->is_gone = true;
        place.await(1, wanted);
        place.add({"a", "b"});
        place.await(2, amount::one);
        place.add({"c"});
        place.told->is_gone = false;
        CHECK(place.take() == "a");
        CHECK(place.take() == "b");
        place.await(3, wanted);
        CHECK(place.told->lines(3) == strings{"c"});
    }
}

TEST_CASE("line hub: a call that is cancelled or late takes no line") {
    if (would_leave_threads())
        return;
    hub_place place;
    place.await(1);
    place.await(2, amount::one, 0ms);
    CHECK(place.told->result(2).what == completion::kind::time_up);
    place.await(3, amount::one, 1h);
    place.on_output([](line_hub& hub) {
        CHECK(hub.cancel(1));
        CHECK_FALSE(hub.cancel(1));
        CHECK_FALSE(hub.cancel(2));
    });
    CHECK(place.told->result(1).what == completion::kind::aborted);
    place.add({"a", "b"});
    CHECK(place.told->lines(3) == strings{"a"});
    place.await(4, amount::one, 1h);  // has no need of a timer
    CHECK(place.told->lines(4) == strings{"b"});
    place.await(5, amount::one, 1h);
    place.on_output([](line_hub& hub) { hub.end_stream(0, 0, stream::out); });
    CHECK(place.told->result(5).lines == nullptr);
    place.await(6);
    CHECK(place.told->result(6).what == completion::kind::done);
}

TEST_CASE("line hub: calls that come again and again do not keep the thread of another one") {
    if (would_leave_threads())
        return;
    hub_place place;
    constexpr operation_id count = 100;
    place.add(strings(count, "x"));
    operation_id last = 1;
    int on_this_thread = 0;
    place.told->then = [&, here = std::this_thread::get_id()] {
        on_this_thread += std::this_thread::get_id() == here;
        if (last < count)
            place.hub->await({place.told, ++last}, amount::one, std::nullopt);
    };
    place.await(1);
    CHECK(place.told->result(count).lines);
    CHECK(on_this_thread == 1);
    place.on_output([](line_hub&) {});
    place.told->then = {};
}

TEST_CASE("line hub: who takes lines lets those read on that wait for room") {
    if (would_leave_threads())
        return;
    hub_place place(64);
    std::promise<int> first, second;
    place.on_output([&](line_hub& hub) {
        hub.add(run_of({"a", "b"}), when_full::block);
        CHECK_FALSE(hub.has_room());
        hub.when_room([&] {
            first.set_value(1);
            return true;
        });
        hub.when_room([&] {
            second.set_value(2);
            return false;
        });
    });
    CHECK(place.take() == "a");
    auto reads = first.get_future();
    REQUIRE(reads.wait_for(60s) == std::future_status::ready);
    CHECK(reads.get() == 1);
    auto waits = second.get_future();
    // The first has not read yet, so the second is called when the next line is taken.
    CHECK(place.take() == "b");
    REQUIRE(waits.wait_for(60s) == std::future_status::ready);
    CHECK(waits.get() == 2);
}

TEST_CASE("line hub: a stream that ends in its turn hands it to the next that waits") {
    if (would_leave_threads())
        return;
    hub_place place(64);
    const waiting_stream first(place, 0);
    const waiting_stream second(place, 1);
    place.on_output([&](line_hub& hub) {
        hub.add(run_of({"a", "b"}), when_full::block);
        CHECK_FALSE(first.sinks->has_room());
        CHECK_FALSE(second.sinks->has_room());
    });
    CHECK(place.take() == "a");
    REQUIRE(first.gets_turn());
    place.on_output([&](line_hub&) { first.sinks->end({}); });
    CHECK(second.gets_turn());
}

TEST_CASE("line hub: a stream whose read hangs in its turn does not keep the others from theirs") {
    if (would_leave_threads())
        return;
    hub_place place(64);
    const waiting_stream first(place, 0);
    const waiting_stream second(place, 1);
    const waiting_stream third(place, 2);
    place.on_output([&](line_hub& hub) {
        hub.add(run_of({"a", "b"}), when_full::block);
        for (const auto* const each : {&first, &second, &third})
            CHECK_FALSE(each->sinks->has_room());
    });
    CHECK(place.take() == "a");
    CHECK(place.take() == "b");  // so nobody takes a line any more
    CHECK(first.gets_turn());
    CHECK(second.gets_turn());
    CHECK(third.gets_turn());
}

TEST_CASE("line hub: a stream that waits for room does not wait for lines that may be dropped") {
    if (would_leave_threads())
        return;
    hub_place place(64);
    const waiting_stream waits(place, 0);
    place.on_output([&](line_hub& hub) {
        hub.add(run_of({"a", "b"}), when_full::block);
        CHECK_FALSE(waits.sinks->has_room());
    });
    CHECK(place.take() == "a");
    place.on_output([](line_hub& hub) {  // others fill the room at once
        hub.add(run_of({"c", "d"}), when_full::drop_oldest);
    });
    CHECK(waits.gets_turn());
    place.on_output([&](line_hub& hub) {
        CHECK(waits.sinks->has_room());
        waits.sinks->take("e\n");
        waits.sinks->end({});
        CHECK_FALSE(hub.has_room());
    });
    CHECK(place.take() == "b");
    CHECK(place.take() == "e");
}

TEST_CASE("line hub: a long line that came while there was room is not lost at the worker's end") {
    if (would_leave_threads())
        return;
    for (const bool is_whole : {true, false}) {
        hub_place place(64);
        const waiting_stream of(place, 0, 10'000);
        place.on_output([&](line_hub& hub) {
            of.sinks->take(std::string(5'000, 'x'));
            CHECK(of.sinks->has_room());
            hub.add(run_of({"a", "b"}), when_full::block);
            CHECK_FALSE(of.sinks->has_room());
            if (is_whole)
                of.sinks->take("\n");
            of.sinks->end({});
        });
        CHECK(place.take() == "a");
        CHECK(place.take() == "b");
        CHECK(place.take() == std::string(5'000, 'x'));
        CHECK(place.hub->lost_bytes(0, 0, stream::out) == 0);
    }
}

TEST_CASE("line hub: each line goes to one of several threads, to each in order") {
    if (would_leave_threads())
        return;
    hub_place place;
    constexpr int readers = 3;
    constexpr int rounds = 400;
    constexpr int lines_of_round = 50;
    std::vector<int> seen[readers];
    std::vector<std::thread> threads;
    for (int r = 0; r < readers; ++r)
        threads.emplace_back([&, r] {
            for (operation_id id = static_cast<operation_id>(r) + 1;; id += readers) {
                run_part line;
                if (place.hub->take_line(line)) {
                    seen[r].push_back(std::stoi(line_of(line).text));
                    continue;
                }
                place.await(id, id % 7 == 0 ? amount::all : amount::one);
                const auto done = place.told->result(id);
                if (!done.lines)
                    return;
                for (const auto& each : lines_of(*done.lines))
                    seen[r].push_back(std::stoi(each.text));
            }
        });
    for (int round = 0; round < rounds; ++round) {
        strings lines;
        for (int i = 0; i < lines_of_round; ++i)
            lines.push_back(std::to_string(round * lines_of_round + i));
        place.add(lines);
    }
    place.on_output([](line_hub& hub) { hub.end_stream(0, 0, stream::out); });
    CHECK(place.hub->lost_bytes(0, 0, stream::out) == 0);
    for (auto& each : threads)
        each.join();
    std::vector<int> all;
    for (const auto& each : seen) {
        CHECK(std::is_sorted(each.begin(), each.end()));
        all.insert(all.end(), each.begin(), each.end());
    }
    std::sort(all.begin(), all.end());
    REQUIRE(all.size() == rounds * lines_of_round);
    for (int i = 0; i < rounds * lines_of_round; ++i)
        CHECK(all[static_cast<std::size_t>(i)] == i);
}

}  // namespace line_hub_test
