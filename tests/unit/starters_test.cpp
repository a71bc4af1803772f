// SPDX-License-Identifier: BSL-1.0
#include "loop/threads/starters.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>

namespace starters_test {

using cohort::loop::start_job;
using cohort::loop::starters;

namespace {

/// Starters never end, so they are leaked here as they are in the library.
starters& started() {
    auto* fresh = new starters;
    fresh->start();
    return *fresh;
}

/// A job of several steps that tells when it is at one and waits to be let on.
class steps : public start_job {
public:
    explicit steps(int count) : left_(count) {}
    bool step() noexcept override {
        thread = std::this_thread::get_id();
        if (hangs) {
            at_it.set_value();
            let_go.get_future().wait();
        }
        if (--left_ > 0)
            return true;
        done.set_value();
        return false;
    }

    bool hangs = false;
    std::promise<void> at_it;
    std::promise<void> let_go;
    std::promise<void> done;
    std::atomic<std::thread::id> thread;

private:
    std::atomic<int> left_;
};

constexpr auto now = [] { return std::chrono::steady_clock::now(); };

}  // namespace

TEST_CASE("starters: jobs are done step by step, all by one thread") {
    auto& all = started();
    auto first = std::make_shared<steps>(3);
    auto second = std::make_shared<steps>(2);
    all.submit(first);
    all.submit(second);
    first->done.get_future().wait();
    second->done.get_future().wait();
    CHECK(first->thread.load() == second->thread.load());
}

TEST_CASE("starters: while nobody waits, a start may take as long as it likes") {
    auto& all = started();
    auto slow = std::make_shared<steps>(1);
    slow->hangs = true;
    all.submit(slow);
    slow->at_it.get_future().wait();
    CHECK_FALSE(all.take_over_if_hung(now()));
    slow->let_go.set_value();
    slow->done.get_future().wait();
}

TEST_CASE(
    "starters: a fresh one takes over when one hangs and others wait, and the old one is a spare") {
    auto& all = started();
    auto hung = std::make_shared<steps>(1);
    hung->hangs = true;
    all.submit(hung);
    hung->at_it.get_future().wait();

    auto other = std::make_shared<steps>(1);
    all.submit(other);
    auto other_done = other->done.get_future();
    CHECK(all.take_over_if_hung(now() - std::chrono::hours(1)));  // it has not been that long
    CHECK(other_done.wait_for(std::chrono::seconds(0)) == std::future_status::timeout);
    all.take_over_if_hung(now());
    other_done.wait();
    CHECK(other->thread.load() != hung->thread.load());

    hung->let_go.set_value();
    hung->done.get_future().wait();
    auto later = std::make_shared<steps>(1);
    all.submit(later);
    later->done.get_future().wait();
    CHECK(later->thread.load() == other->thread.load());
}

TEST_CASE("starters: a job that is given up is taken over from although nobody waits") {
    auto& all = started();
    auto hung = std::make_shared<steps>(1);
    hung->hangs = true;
    all.submit(hung);
    hung->at_it.get_future().wait();
    all.take_over_from(hung.get());
    auto other = std::make_shared<steps>(1);
    all.submit(other);
    other->done.get_future().wait();
    CHECK(other->thread.load() != hung->thread.load());
    hung->let_go.set_value();
    hung->done.get_future().wait();
}

}  // namespace starters_test
