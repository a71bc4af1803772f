// SPDX-License-Identifier: BSL-1.0
// What workers of a batch print, and what they are fed.
#include "descriptor_limit.hpp"
#include "live_support.hpp"
#include "start_support.hpp"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace batch_streams_test {

using namespace cohort::test;

TEST_CASE("batch streams: what workers print is captured, in files, and told by lines") {
    const leak_guard guard;
    const scratch_directory directory;
    asio::io_context io;
    completed<cohort::group> started;
    cohort::async_spawn(io, cohort::command("sh", "-c", "echo out $COHORT_INDEX; echo err >&2"),
                        cohort::options(30)
                            .at_once(3)
                            .stdout_to(cohort::lines(), cohort::capture(),
                                       cohort::file(directory.file("{index}.log")))
                            .stderr_to(cohort::file(directory.file("all.log"))),
                        started.into());
    run_out(io);
    auto group = started.take();
    std::vector<std::string> lines;
    run_coroutine(io,
                  [](cohort::group& of, std::vector<std::string>& into) -> asio::awaitable<void> {
                      while (const auto line = co_await of.output())
                          into.push_back(line->text);
                  }(group, lines));
    completed<cohort::report> waited;
    group.async_wait(waited.into());
    run_out(io);
    const auto report = waited.take();
    CHECK(report.success());
    CHECK(lines.size() == 30);
    std::ranges::sort(lines);
    CHECK(std::ranges::unique(lines).empty());
    for (const auto& one : report.outcomes)
        CHECK(one.out.text() == "out " + std::to_string(one.index) + "\n");
}

TEST_CASE("batch streams: descriptors and pipes are those of the workers that run") {
    const leak_guard guard;
    const descriptor_limit tight(200);
    const auto report = ended(cohort::command("echo", "x"),
                              cohort::options(300).at_once(4).output_to(cohort::capture()));
    CHECK(report.success());
    CHECK(report.outcomes.size() == 300);
}

TEST_CASE("batch streams: a file for each worker takes descriptors only while its worker runs") {
    const leak_guard guard;
    const scratch_directory directory;
    const descriptor_limit tight(200);
    const auto report =
        ended(cohort::command("sh", "-c", "echo $COHORT_INDEX"),
              cohort::options(300).at_once(4).stdout_to(
                  cohort::file(directory.file("{index}.log")).timestamps(), cohort::capture()));
    const auto logs = ended(cohort::command("sh", "-c", "echo $COHORT_INDEX"),
                            cohort::options(300)
                                .at_once(4)
                                .stdout_to(cohort::capture())
                                .logs(cohort::logs(directory.file("logs")).run_id("a")));
    CHECK(report.success());
    CHECK(logs.success());
    std::ifstream last(directory.file("299.log"));
    std::string line;
    std::getline(last, line);
    CHECK(line.ends_with(" 299"));
    CHECK(std::filesystem::file_size(directory.file("logs/a/attempt_0/299/stdout.log")) == 4);
}

TEST_CASE(
    "batch streams: what is written to workers that wait reaches them, and their input is closed") {
    const leak_guard guard;
    asio::io_context io;
    completed<cohort::group> started;
    cohort::async_spawn(
        io, cohort::command("cat"),
        cohort::options(4).at_once(1).stdin_from(cohort::feed()).stdout_to(cohort::capture()),
        started.into());
    run_out(io);
    auto group = started.take();
    int written = 0;
    for (int index = 0; index < 4; ++index) {
        group.async_write(index, "text of " + std::to_string(index),
                          [&](std::exception_ptr e) { written += e ? 0 : 1; });
        group.close_input(index);
    }
    completed<cohort::report> waited;
    group.async_wait(waited.into());
    run_out(io);
    const auto report = waited.take();
    CHECK(report.success());
    CHECK(written == 4);
    for (const auto& one : report.outcomes)
        CHECK(one.out.text() == "text of " + std::to_string(one.index));
}

TEST_CASE(
    "batch streams: a write to a worker that waits ends when it is cancelled, or never starts") {
    const leak_guard guard;
    asio::io_context io;
    completed<cohort::group> started;
    cohort::async_spawn(io, cohort::command("sleep", "1000"),
                        cohort::options(3).at_once(1).stdin_from(cohort::feed()), started.into());
    run_out(io);
    auto group = started.take();
    asio::cancellation_signal cancel;
    std::error_code cancelled, dropped;
    const auto into = [](std::error_code& code) {
        return [&code](std::exception_ptr e) {
            try {
                if (e)
                    std::rethrow_exception(e);
            } catch (const std::system_error& error) {
                code = error.code();
            }
        };
    };
    group.async_write(1, "x", asio::bind_cancellation_slot(cancel.slot(), into(cancelled)));
    group.async_write(2, "x", into(dropped));
    cancel.emit(asio::cancellation_type::terminal);
    completed<cohort::report> stopped;
    group.async_stop(stopped.into());
    run_out(io);
    CHECK(cancelled == asio::error::operation_aborted);
    CHECK(dropped == std::errc::broken_pipe);
    CHECK(stopped.done());
}

namespace {

/// The files in this directory that this process has open.
std::vector<std::string> open_files_in(const std::string& directory) {
    std::vector<std::string> open;
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code gone;
        const auto path = std::filesystem::read_symlink(each, gone).string();
        if (path.starts_with(directory))
            open.push_back(path);
    }
    return open;
}

}  // namespace

TEST_CASE("batch streams: a later start that fails closes the worker's files and ends its writes") {
    const leak_guard guard;
    const scratch_directory directory;
    asio::io_context io;
    ready up(io.get_executor());
    const gate hold;
    const auto make = [](int index) {
        return index == 0   ? cohort::command("true")
               : index == 1 ? cohort::command("cohort-no-such-program")
                            : gated();
    };
    completed<cohort::group> started;
    cohort::async_spawn(io, cohort::command_for(make),
                        cohort::options(3)
                            .at_once(1)
                            .on_failure(cohort::on_failure::keep_going)
                            .stdin_from(cohort::feed())
                            .stdout_to(cohort::file(directory.file("{index}.log")).timestamps())
                            .fd(up.child_end(), ready::number)
                            .fd(hold.child_end(), gate::number),
                        started.into());
    run_out(io);
    auto group = started.take();
    std::exception_ptr written;
    group.async_write(1, "x", [&](std::exception_ptr e) { written = e; });
    run_coroutine(io, up.wait(1));  // the last worker lives now
    run_out(io);                    // until the write has ended
    CHECK_THROWS_AS(std::rethrow_exception(written), std::system_error);
    const watchdog bounded;
    while (open_files_in(directory.path()) != std::vector{directory.file("2.log")})
        std::this_thread::yield();  // a close has no event
    completed<cohort::report> stopped;
    group.async_stop(stopped.into());
    run_out(io);
    CHECK(stopped.take().outcomes.at(1).cause == cohort::cause::not_started);
}

}  // namespace batch_streams_test
