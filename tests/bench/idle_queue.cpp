// SPDX-License-Identifier: BSL-1.0
// Measures what a get or a put costs while it waits: how often threads of this process wake, and
// their CPU time.
#include "asio_ticker.hpp"
#include "sections.hpp"
#include "trips.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <unistd.h>

namespace bench {
namespace {

using cohort::queue;

/// What all threads but the calling one have used so far.
struct used {
    long wakes = 0;  // each time a thread wakes, it has gone to sleep before: by its own choice
    double cpu_ms = 0;

    static used now() {
        used sum;
        for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
            const pid_t thread = std::stoi(task.path().filename());
            if (thread != ::gettid())
                sum.add(thread, task.path() / "status");
        }
        return sum;
    }

private:
    void add(pid_t thread, const std::filesystem::path& status) {
        std::ifstream lines(status);
        long count = 0;
        for (std::string word; lines >> word;)
            if (word == "voluntary_ctxt_switches:" && lines >> count)
                wakes += count;
        timespec cpu{};
        const auto clock = static_cast<clockid_t>((~static_cast<unsigned>(thread) << 3) | 6);
        if (::clock_gettime(clock, &cpu) == 0)  // the clock of pthread_getcpuclockid(3)
            cpu_ms += double(cpu.tv_sec) * 1e3 + double(cpu.tv_nsec) / 1e6;
    }
};

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
