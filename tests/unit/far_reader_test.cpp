// SPDX-License-Identifier: BSL-1.0
// When a stream from another machine gives its parts to its sinks. The loop never ends: each case
// has a process of its own.
#include "output/streams/far_streams.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"
#include "sys_support.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace far_reader_test {

using namespace cohort;
using namespace cohort::test;
using output::far_reader;

namespace {

/// What the sinks of all starts are told: "0: ab lost 1 c end".
struct told {
    std::string all;
    bool has_room = true;
    std::uint64_t consumed = 0;
};

class sink final : public output::byte_sink {
public:
    sink(told& to, int attempt) : to_(to) { to_.all += std::to_string(attempt) + ':'; }
    void take(std::string_view bytes) override { (to_.all += ' ') += bytes; }
    void lose(std::uint64_t, std::uint64_t bytes) override {
        to_.all += " lost " + std::to_string(bytes);
    }
    bool has_room() override { return to_.has_room; }
    void leave_room() override {}
    void end(std::error_code) override { to_.all += " end; "; }

private:
    told& to_;
};

struct stream {
    loop::engine& loop = *new loop::engine;
    told& to = *new told;
    std::shared_ptr<far_reader> reader;

    stream() {
        loop.start();
        reader =
            std::make_shared<far_reader>(loop, [this](std::uint64_t cost) { to.consumed += cost; });
        reader->set_sinks([this](int attempt) { return std::make_shared<sink>(to, attempt); });
    }
    /// Does something on the loop's thread, and waits until what it has posted is done.
    void on_loop(const std::function<void()>& what) const {
        for (int turn = 0; turn < 10; ++turn) {
            std::promise<void> done;
            loop.post([&] {
                if (turn == 0)
                    what();
                done.set_value();
            });
            done.get_future().wait();
        }
    }
    void take(int attempt, std::string_view bytes, bool ends = false, std::uint64_t lost = 0) {
        reader->take({attempt, 0, lost, bytes, ends}, bytes.size() + 10);
    }
};

void holds(bool (*body)(stream&)) {
    if (under_tsan)
        return skip(no_threads_in_copies);
    CHECK(in_fork([&] { return body(*new stream) ? 0 : 1; }) == 0);
}

}  // namespace

TEST_CASE("far reader: with room each part goes on at once, each start to a sink of its own") {
    holds([](stream& s) {
        s.on_loop([&] {
            s.take(0, "ab");
            s.take(0, "c", true, 1);
            s.take(1, "d");
        });
        return s.to.all == "0: ab lost 1 c end; 1: d" && s.to.consumed == 34;
    });
}

TEST_CASE("far reader: without room parts are kept, and are not consumed") {
    holds([](stream& s) {
        s.to.has_room = false;
        s.on_loop([&] {
            s.take(0, "ab");
            s.take(0, "c");
            s.take(0, "", true);
            s.take(1, "d");
        });
        if (s.to.all != "0:" || s.to.consumed != 0)
            return false;
        s.to.has_room = true;
        s.on_loop([&] { s.reader->go_on(); });
        return s.to.all == "0: abc end; 1: d" && s.to.consumed == 44;
    });
}

TEST_CASE("far reader: at the worker's end all is taken over the sink's room") {
    holds([](stream& s) {
        s.to.has_room = false;
        bool has_ended = false;
        s.on_loop([&] {
            s.take(0, "ab", true);
            s.take(1, "c");
            s.reader->worker_ended([&] { has_ended = true; });
            s.take(1, "late");
        });
        return has_ended && s.to.all == "0: ab end; 1: c end; " && s.to.consumed == 23;
    });
}

TEST_CASE("far reader: a stream of which nothing came ends at once") {
    holds([](stream& s) {
        bool has_ended = false;
        s.on_loop([&] { s.reader->worker_ended([&] { has_ended = true; }); });
        return has_ended && s.to.all.empty();
    });
}

TEST_CASE("far reader: the losses of a bounded number of starts are told") {
    holds([](stream& s) {
        s.on_loop([&] {
            for (int start = 0; start < 5'000; ++start)
                s.take(start, "", true, 1);
        });
        std::size_t count = 0;
        for (std::size_t at = 0; (at = s.to.all.find("lost", at)) != std::string::npos; ++at)
            ++count;
        return count == 1'000;
    });
}

}  // namespace far_reader_test
