// SPDX-License-Identifier: BSL-1.0
// output() that is cancelled, or whose group or context goes away.
#include "stream_support.hpp"

#include <asio/bind_executor.hpp>

#include <memory>

namespace output_cancel_test {

using namespace std::chrono_literals;
using namespace cohort::test;
using asio::cancellation_type;
using cohort::lines;
using cohort::output_line;
using maybe_line = cohort::received<output_line>;
using maybe_lines = cohort::received<std::vector<output_line>>;

namespace {

void count_up(int, int count) {
    for (int i = 0; i < count; ++i)
        put(1 + i % 2, std::to_string(i) + "\n");
}

}  // namespace

TEST_CASE("output cancel: it loses no line, whenever it comes, and stops no worker") {
    const leak_guard guard;
    asio::io_context io;
    completed<cohort::group> started;
    const int count = 2000;
    cohort::async_spawn(io, cohort::function<count_up>(count),
                        cohort::options(1).stdout_to(lines()).stderr_to(cohort::merge()),
                        started.into());
    auto group = result_of(io, started);
    int expected = 0;
    const cancellation_type types[] = {cancellation_type::terminal, cancellation_type::total};
    for (int round = 0; expected < count; ++round) {
        asio::cancellation_signal cancel;
        completed<maybe_line> told;
        group.async_output(told.into(cancel));
        if (round % 3 != 0)
            cancel.emit(types[round % 2]);
        run_out(io);
        CHECK(told.calls() == 1);
        CHECK((told.well() || told.aborted()));
        if (told.well())
            CHECK(told.take()->text == std::to_string(expected++));
    }
    completed<bool> joined;
    group.async_join(joined.into());
    CHECK(result_of(io, joined));  // no cancel has stopped the group
}

TEST_CASE("output cancel: every type ends the wait at once, and a later call gets the lines") {
    const leak_guard guard;
    for (const auto type :
         {cancellation_type::total, cancellation_type::partial, cancellation_type::terminal}) {
        asio::io_context io;
        gate hold;
        auto group = start_printing(io, hold);
        (void)next_line(io, group);
        asio::cancellation_signal cancel, cancel_batch, cancel_timed;
        completed<maybe_line> told, timed, other;
        completed<maybe_lines> batch;
        group.async_output(told.into(cancel));
        group.async_output_batch(batch.into(cancel_batch));
        group.async_output(1h, timed.into(cancel_timed));
        for (auto* each : {&cancel, &cancel_batch, &cancel_timed})
            each->emit(type);
        run_out(io);
        CHECK(told.aborted());
        CHECK(batch.aborted());
        CHECK(timed.aborted());
        CHECK(group.alive() == 1);
        group.async_output(other.into());
        hold.open();
        run_out(io);
        CHECK(other.take()->text == "then");
    }
}

TEST_CASE("output cancel: in a dropped group it ends empty") {
    const leak_guard guard;
    asio::io_context io;
    gate hold;
    completed<maybe_line> told;
    completed<maybe_lines> batch;
    {
        auto group = start_printing(io, hold);
        (void)next_line(io, group);
        group.async_output(told.into());
        group.async_output_batch(batch.into());
    }
    run_out(io);
    CHECK(told.take().ended());
    CHECK(batch.take().ended());
}

TEST_CASE("output cancel: a context that is destroyed while output() waits leaves nothing") {
    const leak_guard guard;
    for (const bool keeps_group : {true, false}) {
        gate hold;
        auto io = std::make_unique<asio::io_context>();
        auto token = std::make_shared<int>(0);
        cohort::group group = start_printing(*io, hold);
        group.async_output_batch([](std::exception_ptr, maybe_lines) {});
        for (int i = 0; i < 3; ++i)
            group.async_output([token](std::exception_ptr, maybe_line) { FAIL("called"); });
        if (!keeps_group)
            group = {};
        io.reset();
        CHECK(token.use_count() == 1);
    }
}

TEST_CASE("output cancel: a line for one whose context is gone is given to the next") {
    const leak_guard guard;
    asio::io_context io;
    gate hold;
    auto group = start_printing(io, hold);
    CHECK(next_line(io, group).text == "now");
    {
        asio::io_context short_lived;
        const auto never = [](std::exception_ptr, maybe_line) { FAIL("called"); };
        group.async_output(asio::bind_executor(short_lived, never));
    }
    hold.open();
    CHECK(next_line(io, group).text == "then");
}

}  // namespace output_cancel_test
