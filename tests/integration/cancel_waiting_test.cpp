// SPDX-License-Identifier: BSL-1.0
// Cancellation by Asio's types of what does not wait for the end of the group: every type stops
// waiting, and the group goes on.
#include "stream_support.hpp"

#include <asio/bind_cancellation_slot.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <array>
#include <chrono>
#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace cancel_waiting_test {

using namespace std::chrono_literals;
using namespace cohort::test;
using asio::cancellation_type;

using maybe_outcome = cohort::received<cohort::outcome>;
using maybe_line = cohort::received<cohort::output_line>;

/// Reads its input when the gate opens, and prints a line at its end.
void read_after_gate(int) {
    say_ready();
    wait_at_gate();
    (void)read_all(0);
    put(1, "then\n");
}

/// Checks that two workers end well, and that each end and each line is given.
asio::awaitable<void> goes_on(cohort::group& group) {
    CHECK(co_await group.join());
    int ends = 0;
    while (const auto ended = co_await group.next())
        ends += ended->success() ? 1 : 0;
    CHECK(ends == 2);
    const auto lines = co_await all_output(group);
    CHECK(texts_of(lines) == std::vector<std::string>{"then", "then"});
}
TEST_CASE("cancel waiting: no type of cancellation of next, output or write stops the group") {
    have_server();
    const leak_guard guard;
    for (const auto method : all_methods)
        for (const auto type : {cancellation_type::total, cancellation_type::partial,
                                cancellation_type::terminal, cancellation_type::all}) {
            CAPTURE(static_cast<int>(method));
            CAPTURE(static_cast<int>(type));
            asio::io_context io;
            gate hold;
            auto group = start_ready(io, cohort::function<read_after_gate>(), 2,
                                     by(method)
                                         .stdin_from(cohort::feed())
                                         .stdout_to(cohort::lines())
                                         .fd(hold.child_end(), gate::number));
            std::array<asio::cancellation_signal, 7> cancels;
            completed<maybe_outcome> ended, ended_in_time;
            completed<maybe_line> line, line_in_time;
            completed<cohort::received<std::vector<cohort::output_line>>> batch, batch_in_time;
            completed<bool> written;
            group.async_next(ended.into(cancels[0]));
            group.async_next(1h, ended_in_time.into(cancels[1]));
            group.async_output(line.into(cancels[2]));
            group.async_output(1h, line_in_time.into(cancels[3]));
            group.async_output_batch(batch.into(cancels[4]));
            group.async_output_batch(1h, batch_in_time.into(cancels[5]));
            group.async_write(
                0, std::string(10'000'000, 'a'),
                asio::bind_cancellation_slot(cancels[6].slot(), [&](std::exception_ptr error) {
                    written.into()(std::move(error), true);
                }));
            for (auto& each : cancels)
                each.emit(type);
            run_out(io);
            CHECK(ended.aborted());
            CHECK(ended_in_time.aborted());
            CHECK(line.aborted());
            CHECK(line_in_time.aborted());
            CHECK(batch.aborted());
            CHECK(batch_in_time.aborted());
            CHECK(written.aborted());
            CHECK(group.alive() == 2);
            for (const int index : {0, 1})
                group.close_input(index);
            hold.open();
            run_coroutine(io, goes_on(group));
        }
}

TEST_CASE("cancel waiting: next, output or write || timer does not stop the group") {
    const leak_guard guard;
    using namespace asio::experimental::awaitable_operators;
    asio::io_context io;
    gate hold;
    auto how = cohort::options(1).stdin_from(cohort::feed()).stdout_to(cohort::lines());
    auto group = start_ready(io, cohort::function<read_after_gate>(), 2,
                             how.fd(hold.child_end(), gate::number));
    run_coroutine(io, [](cohort::group& g) -> asio::awaitable<void> {
        const auto soon = []() -> asio::awaitable<void> {
            asio::steady_timer timer(co_await asio::this_coro::executor, 1ms);
            co_await timer.async_wait(asio::use_awaitable);
        };
        const auto ended = co_await (g.next() || soon());
        CHECK(ended.index() == 1);
        const auto line = co_await (g.output() || soon());
        CHECK(line.index() == 1);
        const auto batch = co_await (g.output_batch() || soon());
        CHECK(batch.index() == 1);
        const auto written = co_await (g.write(0, std::string(10'000'000, 'a')) || soon());
        CHECK(written.index() == 1);
        CHECK(g.alive() == 2);
        g.close_input(0);
        g.close_input(1);
    }(group));
    hold.open();
    run_coroutine(io, goes_on(group));
}

}  // namespace cancel_waiting_test
