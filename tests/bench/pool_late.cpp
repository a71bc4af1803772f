// SPDX-License-Identifier: BSL-1.0
// Measures how late join(10 ms) of a group gives up while a pool makes calls with large values on
// another loop: both are served by the same thread of the library.
#include "asio_ticker.hpp"
#include "echo.hpp"
#include "sections.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace bench {
namespace {

class large_calls {
public:
    explicit large_calls(int bytes)
        : thread_([this, bytes] { run_beside(nullptr, call(std::size_t(bytes))); }) {
        done_.wait(0);
    }
    ~large_calls() { ends_ = true; }

    int done() const { return done_; }

private:
    asio::awaitable<void> call(std::size_t bytes) {
        auto pool = co_await cohort::start_pool(1);
        std::string value(bytes, 'x');
        while (!ends_) {
            value = co_await pool.submit(cohort::task<echo>(std::move(value)));
            ++done_;
            done_.notify_all();
        }
        co_await pool.stop();
    }

    std::atomic<bool> ends_ = false;
    std::atomic<int> done_ = 0;
    std::jthread thread_;
};

asio::awaitable<void> join_often(const std::string& program, int times,
                                 std::vector<double>& late_us) {
    constexpr std::chrono::milliseconds timeout{10};
    auto group = co_await cohort::spawn(cohort::command(program), 1);
    for (int i = 0; i < times; ++i) {
        const auto before = std::chrono::steady_clock::now();
        const bool ended = co_await group.join(timeout);
        if (ended)
            throw std::runtime_error("the quiet worker has ended");
        const auto late = std::chrono::steady_clock::now() - before - timeout;
        late_us.push_back(std::chrono::duration<double, std::micro>(late).count());
    }
    co_await group.stop();
}

}  // namespace

void pool_late(const arguments& words) {
    std::vector<double> late_us;
    int calls = 0;
    const auto join = [&] {
        run_beside(nullptr, join_often(words.text("pauses"), words.number("joins"), late_us));
    };
    if (words.text("peer") == "cohort") {
        const large_calls beside(words.number("bytes"));
        join();
        calls = beside.done();
    } else {
        join();
    }
    fmt::print("{{\"late_us\": [{}], \"calls\": {}}}\n", fmt::join(late_us, ", "), calls);
}

}  // namespace bench
