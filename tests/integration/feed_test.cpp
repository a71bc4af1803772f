// SPDX-License-Identifier: BSL-1.0
// feed(): write() and close_input() fill the standard input of a worker.
#include "stream_support.hpp"

#include <asio/use_future.hpp>

#include <algorithm>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <system_error>

#include <sys/wait.h>
#include <unistd.h>

namespace feed_test {

using namespace cohort::test;
using asio::cancellation_type;
using cohort::feed;

namespace {

constexpr std::size_t large = 10'000'000;

std::string read_input(int) { return read_all(0); }

/// Reads slowly: nothing before the gate opens, then a little at a time.
std::string read_slowly(int) {
    wait_at_gate();
    std::string all;
    char buffer[1'000];
    for (ssize_t got = 0; (got = ::read(0, buffer, sizeof buffer)) > 0;)
        all.append(buffer, static_cast<std::size_t>(got));
    return all;
}

/// Reads one byte, closes its input and waits until the gate opens.
void close_early(int) {
    char byte = 0;
    (void)!::read(0, &byte, 1);
    ::close(0);
    say_ready();
    wait_at_gate();
}

/// How a write completes.
class written {
public:
    auto into() {
        return [this](std::exception_ptr error) {
            bool unused = false;
            end_.into()(std::move(error), unused);
        };
    }
    auto into(asio::cancellation_signal& by) {
        return asio::bind_cancellation_slot(by.slot(), into());
    }
    const completed<bool>* operator->() const noexcept { return &end_; }
    bool is_broken() const { return end_.calls() == 1 && end_.code() == std::errc::broken_pipe; }

private:
    completed<bool> end_;
};

template <class Work>
cohort::group started(asio::io_context& io, Work work, cohort::options how) {
    completed<cohort::group> start;
    cohort::async_spawn(io, std::move(work), std::move(how), start.into());
    return result_of(io, start);
}

cohort::report end_of(asio::io_context& io, cohort::group& group) {
    completed<cohort::report> end;
    group.async_wait(end.into());
    return result_of(io, end);
}

}  // namespace

TEST_CASE("feed: what is fed arrives, and the worker sees the end, by all start methods") {
    have_server();
    const leak_guard guard;
    for (const auto method : all_methods) {
        asio::io_context io;
        auto group = started(io, cohort::function<read_input>(), by(method, 3).stdin_from(feed()));
        run_coroutine(io, [](cohort::group& g) -> asio::awaitable<void> {
            co_await g.write(2, std::string("a\0b", 3));
            co_await g.write(2, "");
            co_await g.write(0, "for 0\n");
        }(group));
        group.async_write(2, "\xff", asio::use_future).get();
        for (int index = 0; index < 3; ++index)
            group.close_input(index);
        const auto report = end_of(io, group);
        CHECK(report.outcomes.at(0).result<std::string>() == "for 0\n");
        CHECK(report.outcomes.at(1).result<std::string>() == "");
        CHECK(report.outcomes.at(2).result<std::string>() == std::string("a\0b\xff", 4));
    }
}

TEST_CASE("feed: a write waits for a slow reader, and close_input comes behind it") {
    const leak_guard guard;
    asio::io_context io;
    gate hold;
    auto group = started(io, cohort::function<read_slowly>(),
                         cohort::options(1)
                             .stdin_from(feed())
                             .fd(hold.child_end(), gate::number)
                             .result_limit(2 * large));
    written first, second, late;
    group.async_write(0, bytes_of_stream(1, 0, large), first.into());
    group.async_write(0, "the end", second.into());
    group.close_input(0);
    group.close_input(0);
    group.async_write(0, "too late", late.into());
    while (!late->done() && io.run_one() != 0) {
    }
    CHECK(late.is_broken());
    CHECK_FALSE(first->done());  // no pipe takes so much
    CHECK_FALSE(second->done());
    hold.open();
    const auto report = end_of(io, group);
    run_out(io);
    CHECK(first->well());
    CHECK(second->well());
    CHECK(
        (report.outcomes.at(0).result<std::string>() == bytes_of_stream(1, 0, large) + "the end"));
}

TEST_CASE("feed: overlapping writes arrive whole and in the order of the calls") {
    const leak_guard guard;
    asio::io_context io;
    auto group = started(io, cohort::function<read_input>(), cohort::options(2).stdin_from(feed()));
    std::string all;
    std::vector<int> order;
    for (int i = 0; i < 200; ++i) {
        const auto text = bytes_of_stream(i, 0, static_cast<std::size_t>(i * 131 % 3000));
        all += text;
        group.async_write(i % 2, text, [&order, i](std::exception_ptr error) {
            CHECK_FALSE(error);
            order.push_back(i);
        });
        group.async_write(1 - i % 2, text, [](std::exception_ptr error) { CHECK_FALSE(error); });
    }
    for (const int index : {0, 1})
        group.close_input(index);
    const auto report = end_of(io, group);
    run_out(io);
    for (const auto& worker : report.outcomes)
        CHECK((worker.result<std::string>() == all));
    for (const int parity : {0, 1}) {
        std::vector<int> of_worker;
        std::copy_if(order.begin(), order.end(), std::back_inserter(of_worker),
                     [&](int i) { return i % 2 == parity; });
        CHECK(of_worker.size() == 100);
        CHECK(std::is_sorted(of_worker.begin(), of_worker.end()));
    }
}

TEST_CASE("feed: EPIPE when the worker closes its input, also for what is pending") {
    const leak_guard guard;
    asio::io_context io;
    gate hold;
    written pending, later;
    auto group = [&] {
        ready up(io.get_executor());
        auto g = started(io, cohort::function<close_early>(),
                         cohort::options(1)
                             .stdin_from(feed())
                             .fd(up.child_end(), ready::number)
                             .fd(hold.child_end(), gate::number));
        g.async_write(0, std::string(large, 'x'), pending.into());
        run_coroutine(io, up.wait());
        return g;
    }();
    run_out(io);
    CHECK(pending.is_broken());
    group.async_write(0, "x", later.into());
    run_out(io);
    CHECK(later.is_broken());
    group.close_input(0);
    hold.open();
    CHECK(end_of(io, group).success());
}

TEST_CASE("feed: EPIPE also for an empty text, which no pipe refuses") {
    const leak_guard guard;
    asio::io_context io;
    gate hold;
    ready up(io.get_executor());
    written first, nothing;
    auto how = cohort::options(1).stdin_from(feed()).fd(up.child_end(), ready::number);
    auto group =
        started(io, cohort::function<close_early>(), how.fd(hold.child_end(), gate::number));
    group.async_write(0, "x", first.into());
    run_coroutine(io, up.wait());
    run_out(io);
    CHECK(first->done());
    group.async_write(0, "", nothing.into());
    run_out(io);
    CHECK(nothing.is_broken());
    hold.open();
    CHECK(end_of(io, group).success());
}

TEST_CASE("feed: EPIPE when the worker has ended or is stopped, whoever holds the pipe") {
    const leak_guard guard;
    for (const bool is_stopped : {false, true}) {
        asio::io_context io;
        gate child;
        written pending, later;
        // Without a job's own rules for stdin: 3 is the pipe.
        const auto script = std::string("exec 3<&0; (exec <&3; read line <&8) & ") +
                            (is_stopped ? "read line; echo >&9; exec sleep 1000" : "read line");
        ready up(io.get_executor());
        auto group = started(io, shell(script),
                             cohort::options(1)
                                 .cgroup(cohort::cgroup::off)
                                 .process_group(cohort::process_group::inherit)
                                 .stdin_from(feed())
                                 .fd(up.child_end(), ready::number)
                                 .fd(child.child_end(), gate::number));
        group.async_write(0, std::string(large, '\n'), pending.into());
        if (is_stopped) {
            run_coroutine(io, up.wait());
            CHECK_FALSE(pending->done());
            group.request_stop();
        }
        (void)end_of(io, group);
        run_out(io);
        CHECK(pending.is_broken());
        group.async_write(0, "x", later.into());
        run_out(io);
        CHECK(later.is_broken());
        group.close_input(0);
        child.open();
    }
}

TEST_CASE("feed: a write that is cancelled drops the rest of its text, and no worker ends") {
    const leak_guard guard;
    for (const auto type :
         {cancellation_type::total, cancellation_type::partial, cancellation_type::terminal}) {
        asio::io_context io;
        gate hold;
        auto group =
            started(io, cohort::function<read_slowly>(),
                    cohort::options(1).stdin_from(feed()).fd(hold.child_end(), gate::number));
        asio::cancellation_signal in_the_middle, unwritten;
        written first, second, third;
        group.async_write(0, std::string(large, 'a'), first.into(in_the_middle));
        group.async_write(0, std::string(100, 'b'), second.into(unwritten));
        group.async_write(0, "c", third.into());
        unwritten.emit(type);
        in_the_middle.emit(type);
        while (!(first->done() && second->done()) && io.run_one() != 0) {
        }
        CHECK(first->aborted());
        CHECK(second->aborted());
        CHECK(group.alive() == 1);
        group.close_input(0);
        hold.open();
        const auto got = end_of(io, group).outcomes.at(0).result<std::string>();
        run_out(io);
        CHECK(third->well());
        CHECK(got.size() < large);
        CHECK((got == std::string(got.size() - 1, 'a') + "c"));
    }
}

TEST_CASE("feed: a group that is dropped or a context that goes ends a pending write") {
    const leak_guard guard;
    for (const bool drops_group : {true, false}) {
        auto io = std::make_unique<asio::io_context>();
        auto group =
            started(*io, cohort::command("sleep", 1000), cohort::options(1).stdin_from(feed()));
        written pending;
        const auto token = std::make_shared<int>(0);
        group.async_write(0, std::string(large, 'x'),
                          [token, told = pending.into()](std::exception_ptr e) { told(e); });
        if (drops_group) {
            group = {};
            run_out(*io);
            CHECK(pending.is_broken());
        }
        io.reset();
        CHECK(token.use_count() == 1);
    }
}

GROUP_TEST("feed: write() to no worker, or to one without feed(), is the caller's fault") {
    const auto for_index = [](int index) {
        return index == 0 ? cohort::command("cat").stdin_from(feed()) : cohort::command("true");
    };
    auto group = co_await cohort::spawn(cohort::command_for(for_index), 2);
    for (const int index : {-1, 2}) {
        CHECK_THROWS_AS(co_await group.write(index, "x"), std::invalid_argument);
        CHECK_THROWS_AS(group.close_input(index), std::invalid_argument);
    }
    CHECK_THROWS_AS(co_await group.write(1, "x"), std::logic_error);
    CHECK_THROWS_AS(group.close_input(1), std::logic_error);
    CHECK_THROWS_WITH(co_await group.write(1, "x"), "cohort::group::write: the standard input of "
                                                    "worker 1 is not feed()");
    group.close_input(0);
    CHECK(co_await group.join());
    cohort::group empty;
    CHECK_THROWS_AS(co_await empty.write(0, "x"), std::logic_error);
    CHECK_THROWS_AS(empty.close_input(0), std::logic_error);
}

TEST_CASE(
    "feed: close_input ends the input of a worker also while a forked copy of the host lives") {
    if (under_tsan)
        return skip(no_threads_in_copies);
    const leak_guard guard;
    asio::io_context io;
    const pipe_pair ends_copy;
    auto group = started(io, cohort::function<read_input>(), cohort::options(1).stdin_from(feed()));
    const pid_t copy = ::fork();
    if (copy == 0) {
        char byte = 0;
        (void)!::read(ends_copy.reads(), &byte, 1);
        ::_exit(0);
    }
    written first;
    group.async_write(0, "text", first.into());
    group.close_input(0);
    const auto report = end_of(io, group);
    CHECK(report.outcomes.at(0).result<std::string>() == "text");
    (void)!::write(ends_copy.writes(), "x", 1);
    CHECK(::waitpid(copy, nullptr, 0) == copy);
}

TEST_CASE("feed: run() refuses it, because nobody gets the group that could be written to") {
    const leak_guard guard;
    const auto reads = cohort::command("cat").stdin_from(cohort::feed());
    const auto of_one = cohort::command_for([](int index) {
        auto work = cohort::command("cat");
        return index == 1 ? work.stdin_from(cohort::feed()) : work.stdin_from(cohort::bytes(""));
    });
    const auto said = [](auto work, int workers) {
        std::string text;
        run_coroutine([](auto work, int workers, std::string& text) -> asio::awaitable<void> {
            try {
                (void)co_await cohort::run(work, workers);
            } catch (const std::invalid_argument& e) {
                text = e.what();
            }
        }(work, workers, text));
        return text;
    };
    const std::string why =
        "cohort: run gives nobody the group that could fill feed(): use bytes()";
    CHECK(said(reads, 1) == why);
    CHECK(said(of_one, 2) == why);
}

}  // namespace feed_test
