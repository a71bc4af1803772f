// SPDX-License-Identifier: BSL-1.0
// Measures what a get or a put costs while it waits: how often threads of this process wake, and
// their CPU time.
#include "asio_ticker.hpp"
#include "sections.hpp"
#include "trips.hpp"
#include "used.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <chrono>
#include <string>
#include <thread>

namespace bench {
namespace {

using cohort::queue;

/// A thread that waits at a queue. The destructor ends the wait.
class waiting {
public:
    waiting(queue<ball> at, bool gets, bool awaits)
        : at_(std::move(at)), gets_(gets), thread_([this, awaits] {
              if (awaits)
                  run_beside(nullptr, await());
              else
                  block();
          }) {}
    ~waiting() {
        ball value;
        if (gets_)
            (void)at_.try_put(value);
        while (!gets_ && at_.try_get()) {
        }
        thread_.join();
    }
    waiting(const waiting&) = delete;
    waiting& operator=(const waiting&) = delete;

private:
    asio::awaitable<void> await() {
        if (gets_)
            (void)co_await at_.get();
        else
            co_await at_.emplace();
    }
    void block() {
        if (gets_)
            (void)at_.reader().get();
        else
            at_.writer().put({});
    }

    queue<ball> at_;
    bool gets_;
    std::thread thread_;
};

void measure(const queue<ball>& at, bool gets, bool awaits, int idle_ms) {
    constexpr std::chrono::milliseconds until_it_waits{300};
    const waiting one(at, gets, awaits);
    std::this_thread::sleep_for(until_it_waits);
    const used before = used::now();
    std::this_thread::sleep_for(std::chrono::milliseconds(idle_ms));
    const used after = used::now();
    fmt::print("{{\"wakes_per_s\": {}, \"cpu_ms\": {}}}\n",
               double(after.wakes - before.wakes) * 1000 / idle_ms, after.cpu_ms - before.cpu_ms);
}

}  // namespace

void idle_queue(const arguments& words) {
    const std::string waits = words.text("waits");
    const bool gets = waits == "get";
    queue<ball> at = waits == "bounded_put" ? queue<ball>(8) : queue<ball>();
    ball value;
    while (!gets && at.try_put(value)) {
    }
    measure(at, gets, words.text("how") == "awaited", words.number("idle_ms"));
}

}  // namespace bench
