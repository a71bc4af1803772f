// SPDX-License-Identifier: BSL-1.0
#include "loop/threads/starters.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <vector>

namespace starters_test {

using cohort::loop::start_job;
using cohort::loop::starters;
using namespace std::chrono_literals;

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

std::shared_ptr<steps> submit_hanging(starters& to) {
    auto job = std::make_shared<steps>(1);
    job->hangs = true;
    to.submit(job);
    return job;
}

void let_end(steps& hung) {
    hung.let_go.set_value();
    hung.done.get_future().wait();
}

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
    const auto slow = submit_hanging(all);
    slow->at_it.get_future().wait();
    CHECK_FALSE(all.take_over_if_hung(now() + 1h).has_value());
    let_end(*slow);
}

TEST_CASE(
    "starters: a fresh one takes over when one hangs and others wait, and the old one is a spare") {
    auto& all = started();
    const auto hung = submit_hanging(all);
    hung->at_it.get_future().wait();

    auto other = std::make_shared<steps>(1);
    all.submit(other);
    auto other_done = other->done.get_future();
    CHECK(all.take_over_if_hung(now() - 1h).has_value());  // it has not been that long
    CHECK(other_done.wait_for(0s) == std::future_status::timeout);
    all.take_over_if_hung(now() + 1h);
    other_done.wait();
    CHECK(other->thread.load() != hung->thread.load());

    let_end(*hung);
    auto later = std::make_shared<steps>(1);
    all.submit(later);
    later->done.get_future().wait();
    CHECK(later->thread.load() == other->thread.load());
}

TEST_CASE("starters: a job that is given up is taken over from although nobody waits") {
    auto& all = started();
    const auto hung = submit_hanging(all);
    hung->at_it.get_future().wait();
    all.take_over_from(hung.get());
    auto other = std::make_shared<steps>(1);
    all.submit(other);
    other->done.get_future().wait();
    CHECK(other->thread.load() != hung->thread.load());
    let_end(*hung);
}

TEST_CASE("starters: 20 that hang delay the next start by less than 100 ms") {
    auto& all = started();
    std::vector<std::shared_ptr<steps>> hung;
    for (int i = 0; i < 20; ++i)
        hung.push_back(submit_hanging(all));
    auto next = std::make_shared<steps>(1);
    all.submit(next);
    std::chrono::nanoseconds delay{0};
    for (const auto& one : hung) {
        one->at_it.get_future().wait();
        const auto hangs_since = now();
        const auto look = all.take_over_if_hung(now() - 1h);
        delay += look.value() - hangs_since;
        (void)all.take_over_if_hung(*look);
    }
    next->done.get_future().wait();
    CHECK(delay < 100ms);
    for (const auto& one : hung)
        let_end(*one);
}

TEST_CASE("starters: where as many hang as there may be, the next start waits for one of them") {
    auto& all = started();
    std::vector<std::shared_ptr<steps>> hung;
    for (std::size_t i = 0; i < starters::most; ++i) {
        hung.push_back(submit_hanging(all));
        (void)all.take_over_if_hung(now() + 1h);
        hung.back()->at_it.get_future().wait();
    }
    auto next = std::make_shared<steps>(1);
    auto done = next->done.get_future();
    all.submit(next);
    CHECK(all.take_over_if_hung(now() + 1h).has_value());
    CHECK(done.wait_for(0s) == std::future_status::timeout);
    let_end(*hung[7]);
    // The starter notes that it is free after the job's last step.
    while (done.wait_for(1ms) == std::future_status::timeout)
        (void)all.take_over_if_hung(now() + 1h);
    CHECK(next->thread.load() == hung[7]->thread.load());
    for (const auto& one : hung)
        if (one != hung[7])
            let_end(*one);
}

}  // namespace starters_test
