// SPDX-License-Identifier: BSL-1.0
// The slots of bounded queues, with processes that are killed or stopped between any two steps.
#include "base/sys/descriptors.hpp"
#include "base/sys/memfd.hpp"
#include "guard.hpp"
#include "share/channel/slots.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <span>
#include <vector>

namespace slots_test {

using namespace cohort;
using namespace std::chrono_literals;
using share::slots;
using ticket = slots::ticket;

bool is_empty(int) noexcept { return true; }
bool is_not_empty(int) noexcept { return false; }
const slots::time start{1000s};

base::unique_fd make(std::uint64_t capacity) {
    std::error_code error;
    auto file = slots::make_file(capacity, 1000, error);
    REQUIRE_FALSE(error);
    return file;
}

/// How many slots can be taken, which are taken then.
std::size_t take_all(slots& from, slots::is_empty empty = is_not_empty, slots::time now = start) {
    std::size_t count = 0;
    while (from.take(0, empty, now))
        ++count;
    return count;
}

/// A put whose message arrives.
ticket put(slots& to) {
    const auto taken = to.take(0, is_not_empty, start);
    REQUIRE(taken);
    to.sent(*taken);
    return *taken;
}

TEST_CASE("slots: there are as many as messages may wait, and what was received is free") {
    const test::leak_guard guard;
    const auto file = make(3);
    slots all(file.get(), 3);
    CHECK(all.waiting(0, is_not_empty, start) == 0);
    std::deque<ticket> waiting{put(all), put(all), put(all)};
    CHECK(all.waiting(0, is_not_empty, start) == 3);
    CHECK_FALSE(all.take(0, is_not_empty, start));
    for (int i = 0; i < 100; ++i) {
        all.received(waiting.front());
        waiting.pop_front();
        CHECK(all.waiting(0, is_not_empty, start) == 2);
        waiting.push_back(put(all));
        CHECK_FALSE(all.take(0, is_not_empty, start));
    }
}

TEST_CASE("slots: another mapping of the file is of one queue") {
    const test::leak_guard guard;
    const auto file = make(2);
    slots one(file.get(), 2), other(file.get(), 2);
    const auto first = put(one);
    CHECK(other.waiting(0, is_not_empty, start) == 1);
    CHECK(take_all(other) == 1);
    other.received(first);
    CHECK(take_all(one) == 1);
}

TEST_CASE("slots: a message that was received before another one is free though its receiver was "
          "killed") {
    const auto file = make(3);
    slots all(file.get(), 3);
    (void)put(all);  // received by a process that is killed
    const auto second = put(all);
    all.received(second);
    CHECK(all.waiting(0, is_not_empty, start) == 0);
    CHECK(take_all(all) == 3);
}

TEST_CASE("slots: what was sent at the same time as a received message is not taken for received") {
    const auto file = make(3);
    slots all(file.get(), 3);
    const auto first = all.take(0, is_not_empty, start);
    const auto second = all.take(0, is_not_empty, start);
    all.sent(*first);
    all.sent(*second);
    all.received(*second);  // which may stand before the first one in the socket
    CHECK(all.waiting(0, is_not_empty, start) == 1);
    CHECK(take_all(all) == 2);
}

TEST_CASE("slots: in an empty queue all is free, but what is about to be sent") {
    const auto file = make(3);
    slots all(file.get(), 3);
    (void)put(all);
    (void)put(all);
    const auto about_to_send = all.take(0, is_empty, start);
    CHECK(all.waiting(0, is_not_empty, start) == 3);
    CHECK(all.waiting(0, is_empty, start) == 1);
    CHECK(take_all(all, is_empty) == 2);
    all.sent(*about_to_send);
    CHECK_FALSE(all.take(0, is_not_empty, start));
}

TEST_CASE("slots: a receiver that was stopped frees nothing that others have taken meanwhile") {
    const auto file = make(1);
    slots all(file.get(), 1);
    const auto first = put(all);
    CHECK(all.take(0, is_empty, start));  // by another put: the first message has left the queue
    all.received(first);
    CHECK_FALSE(all.take(0, is_not_empty, start));
}

TEST_CASE("slots: a receiver may be faster than the sender's note") {
    const auto file = make(1);
    slots all(file.get(), 1);
    const auto first = all.take(0, is_not_empty, start);
    all.received(*first);
    const auto second = all.take(0, is_not_empty, start);
    REQUIRE(second);
    all.sent(*first);
    CHECK_FALSE(all.take(0, is_not_empty, start));
    all.sent(*second);
    all.received(*second);
    CHECK(take_all(all) == 1);
}

TEST_CASE("slots: a put that was killed before it sent gives its slot up after some time") {
    const auto file = make(1);
    slots all(file.get(), 1);
    CHECK(all.take(0, is_empty, start));
    CHECK_FALSE(all.take(0, is_empty, start + slots::patience / 2));
    CHECK(all.take(0, is_empty, start + slots::patience));
}

TEST_CASE("slots: a put that was killed has a slot until a message sent later was received") {
    const auto file = make(2);
    slots all(file.get(), 2);
    CHECK(all.take(0, is_empty, start));  // and it is killed
    const auto earlier = put(all);
    CHECK_FALSE(all.take(0, is_not_empty, start + slots::patience));
    all.received(earlier);  // may stand before the message of the put that was killed
    const auto next = put(all);
    CHECK_FALSE(all.take(0, is_not_empty, start));
    all.received(next);
    CHECK(take_all(all) == 2);
}

TEST_CASE("slots: a receiver that finds no message frees what others have received") {
    const auto file = make(2);
    slots all(file.get(), 2);
    (void)put(all);  // is received by a process that is killed
    all.found_none(0, is_empty);
    CHECK(take_all(all) == 2);
}

TEST_CASE("slots: a put that was killed after it sent has a slot as long as its message waits") {
    const auto file = make(2);
    slots all(file.get(), 2);
    const auto killed = all.take(0, is_empty, start);  // its message waits
    const auto later = start + slots::patience;
    CHECK(all.waiting(0, is_not_empty, later) == 1);
    const auto next = all.take(0, is_not_empty, later);
    REQUIRE(next);
    all.sent(*next);
    CHECK_FALSE(all.take(0, is_not_empty, later));
    all.received(*killed);
    CHECK(all.take(0, is_not_empty, later));
}

TEST_CASE("slots: a put that was stopped and sends later leaves the bound as it was") {
    const auto file = make(1);
    slots all(file.get(), 1);
    const auto stopped = all.take(0, is_empty, start);
    const auto later = start + slots::patience;
    const auto other = all.take(0, is_empty, later);
    REQUIRE(other);
    all.sent(*other);
    all.sent(*stopped);  // one message more than the capacity waits now
    CHECK_FALSE(all.take(0, is_not_empty, later));
    all.received(*stopped);
    CHECK_FALSE(all.take(0, is_not_empty, later));
    all.received(*other);
    CHECK(take_all(all, is_not_empty, later) == 1);
}

TEST_CASE("slots: a message that could not be sent gives its slot back") {
    const auto file = make(1);
    slots all(file.get(), 1);
    const auto taken = all.take(0, is_empty, start);
    all.give_back(*taken);
    CHECK(take_all(all) == 1);
}

// --- what another process may do ---

TEST_CASE("slots: nothing that another process writes into the memory stops anybody") {
    const test::leak_guard guard;
    const auto file = make(7);
    slots all(file.get(), 7);
    std::mt19937_64 random(7);
    std::vector<std::uint64_t> nonsense(64 / 8 + 2 * 7);
    for (int i = 0; i < 10'000; ++i) {
        for (auto& word : nonsense)
            word = random() >> (random() % 64);
        REQUIRE_FALSE(base::write_at(file.get(), std::as_bytes(std::span(nonsense)), 0));
        CHECK(all.waiting(0, is_not_empty, start) <= 7);
        if (const auto taken = all.take(0, is_empty, start))
            all.sent(*taken);
        ticket made_up{.slot = static_cast<std::uint32_t>(random()), .number = random()};
        made_up.before = random();
        all.received(made_up);
    }
}

TEST_CASE("slots: a ticket from the future frees no slot of others") {
    const auto file = make(2);
    slots all(file.get(), 2);
    (void)put(all);
    ticket made_up{.slot = 1'000'000, .number = 1, .before = ~std::uint64_t{0}};
    all.received(made_up);
    made_up.slot = 0;
    all.received(made_up);
    (void)put(all);
    (void)put(all);
    CHECK_FALSE(all.take(0, is_not_empty, start));
}

TEST_CASE("slots: one look gives up a bounded number of slots, and the next looks the others") {
    constexpr std::size_t count = 3 * slots::most_stamps;
    const auto file = make(count);
    slots all(file.get(), count);
    CHECK(take_all(all) == count);  // by puts that are killed
    const auto later = start + slots::patience;
    for (std::size_t looks = 1; looks <= 3; ++looks)
        CHECK(all.waiting(0, is_empty, later) == count - looks * slots::most_stamps);
}

// --- processes that are killed between any two steps ---

/// Processes that put and get, a step at a time, and a socket that keeps messages in order.
class model {
public:
    model(std::uint64_t seed, std::uint64_t capacity)
        : file_(make(capacity)), all_(file_.get(), capacity), capacity_(capacity), random_(seed) {
        now_in_model = this;
    }
    void run(int steps) {
        for (int i = 0; i < steps; ++i) {
            now_ += std::chrono::milliseconds(random_() % 3);
            auto& one = processes_[random_() % processes_.size()];
            if (random_() % 16 == 0)
                one = process();  // killed, and another one starts
            else
                step(one);
            REQUIRE(socket_.size() <= capacity_);
        }
    }
    /// How many the queue takes when all processes were killed and what was in it was received.
    std::size_t room_at_the_end() {
        for (; !socket_.empty(); socket_.pop_front())
            all_.received(socket_.front());
        now_ += slots::patience;
        CHECK(all_.waiting(0, empty, now_) == 0);
        return take_all(all_, empty, now_);
    }

private:
    enum class next { take, send, note, free };
    struct process {
        next what = next::take;
        std::optional<ticket> has;
    };
    static thread_local model* now_in_model;
    static bool empty(int) noexcept { return now_in_model->socket_.empty(); }

    void step(process& one) {
        switch (one.what) {
        case next::take:
            if (random_() % 2 == 0 && !socket_.empty()) {
                one = {next::free, socket_.front()};
                socket_.pop_front();
            } else if ((one.has = all_.take(0, empty, now_))) {
                one.what = next::send;
            }
            return;
        case next::send:
            socket_.push_back(*one.has);
            one.what = next::note;
            return;
        case next::note:
            all_.sent(*one.has);
            break;
        case next::free:
            all_.received(*one.has);
            break;
        }
        one = process();
    }

    base::unique_fd file_;
    slots all_;
    std::uint64_t capacity_;
    std::mt19937_64 random_;
    slots::time now_ = start;
    std::deque<ticket> socket_;
    std::vector<process> processes_{6};
};
thread_local model* model::now_in_model = nullptr;

TEST_CASE("slots: killed between any two steps, processes leave the bound exact") {
    const test::leak_guard guard;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        CAPTURE(seed);
        const auto capacity = seed % 5 + 1;
        model queue(seed, capacity);
        queue.run(1'000);
        CHECK(queue.room_at_the_end() == capacity);
    }
}

}  // namespace slots_test
