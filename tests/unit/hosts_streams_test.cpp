// SPDX-License-Identifier: BSL-1.0
// What workers at a host print and are fed, as the origin has it.
#include "hosts_streams_support.hpp"

#include <cohort/restarts.hpp>

#include <algorithm>
#include <cstdint>

namespace hosts_streams_test {

namespace {

/// "0 out text", "1 err text..." for a line that is not complete.
std::vector<std::string> told(const std::vector<output_line>& lines) {
    std::vector<std::string> all;
    for (const auto& line : lines)
        all.push_back(std::to_string(line.attempt) +
                      (line.stream == stream::out ? " out " : " err ") + line.text +
                      (line.complete ? "" : "..."));
    std::ranges::sort(all);
    return all;
}

using texts = std::vector<std::string>;

}  // namespace

TEST_CASE("hosts streams: lines of both streams come over, and the last one without its end") {
    if (would_leave_threads())
        return;
    far_pair both(options(1).stdout_to(lines()).stderr_to(lines()),
                  shell("echo a; printf b; echo e >&2"));
    both.start();
    both.end();
    CHECK(told(both.read()) == texts{"0 err e", "0 out a", "0 out b..."});
    CHECK_FALSE(both.broken);
}

TEST_CASE("hosts streams: workers are told apart, and merge() is done at the host") {
    if (would_leave_threads())
        return;
    far_pair both(options(3).stdout_to(lines()).stderr_to(merge()),
                  shell("echo $COHORT_INDEX >&2"));
    both.start();
    both.end();
    const auto all = both.read();
    REQUIRE(all.size() == 3);
    for (const auto& line : all)
        CHECK(line.text == std::to_string(line.index));
}

TEST_CASE("hosts streams: chunks() gives the bytes as they came") {
    if (would_leave_threads())
        return;
    far_pair both(options(1).stdout_to(chunks()), shell("printf 'a\\nb'"));
    both.start();
    both.end();
    std::string all;
    for (const auto& chunk : both.read())
        all += chunk.text;
    CHECK(all == "a\nb");
}

TEST_CASE("hosts streams: each start of a worker has lines of its own") {
    if (would_leave_threads())
        return;
    far_pair both(options(1).stdout_to(lines()).restart(restarts(2)),
                  shell("echo a; printf b; exit 3"));
    both.start();
    both.end();
    CHECK(told(both.read()) ==
          texts{"0 out a", "0 out b...", "1 out a", "1 out b...", "2 out a", "2 out b..."});
    CHECK_FALSE(both.broken);
}

TEST_CASE("hosts streams: 50 MB come over whole, also where the stream waits") {
    if (would_leave_threads())
        return;
    for (const auto full : {when_full::block, when_full::drop_oldest}) {
        far_pair both(
            options(1).stdout_to(lines().when_full(full)),
            command("sh", "-c", "yes 0123456789abcdefghijklmnopqrstuvwxyz | head -c 50000000"));
        both.start();
        std::uint64_t bytes = 0;
        std::thread ends([&] { both.end(); });
        while (const auto some = both.read_some())
            for (const auto& part : *some)
                for (std::size_t i = part.first; i < part.first + part.count; ++i)
                    bytes += part.run->lines[i].size + (i == part.first ? part.lost.bytes : 0);
        ends.join();
        CHECK(bytes == 50'000'000);
        CHECK_FALSE(both.broken);
    }
}

TEST_CASE("hosts streams: a reader that reads nothing does not hold up the end") {
    if (would_leave_threads())
        return;
    far_pair both(options(1).stdout_to(lines().when_full(when_full::block).buffer(100'000)),
                  shell("yes | head -c 300000"));
    both.start();
    both.end();
    std::uint64_t bytes = 0;
    for (const auto& line : both.read())
        bytes += line.text.size() + 1 + line.lost_before;
    CHECK(bytes == 300'000);
}

TEST_CASE("hosts streams: without credit a stream drops its oldest lines, and tells how much") {
    if (would_leave_threads())
        return;
    const auto buffer = lines().buffer(100'000);
    far_pair both(options(1).stdout_to(buffer).flush_timeout(0s), shell("seq 500000"), true);
    both.start();
    both.end();
    std::uint64_t bytes = 0;
    std::uint64_t lost = 0;
    const auto all = both.read();
    for (const auto& line : all) {
        lost += line.lost_before;
        bytes += line.complete ? line.text.size() + 1 : line.text.size();
    }
    CHECK(bytes + lost == 3'388'895);
    CHECK(lost > 1'000'000);
    CHECK(all.back().text == "500000");
}

TEST_CASE("hosts streams: a worker is fed, and its input ends") {
    if (would_leave_threads())
        return;
    far_pair both(options(1).stdin_from(feed()).stdout_to(lines()), command("cat"));
    const auto early = both.write(0, "a\n");
    both.start();
    const std::string much = std::string(199'999, 'x') + '\n';
    const auto late = both.write(0, much);
    both.here->close_input(0);
    CHECK(both.calls->result(early).what == detail::completion::kind::done);
    CHECK(both.calls->result(late).what == detail::completion::kind::done);
    both.end();
    std::size_t size = 0;
    for (const auto& line : both.read())
        size += line.text.size();
    CHECK(size == 200'000);
    CHECK_FALSE(both.broken);
}

TEST_CASE("hosts streams: a write to a worker that reads no more fails with EPIPE") {
    if (would_leave_threads())
        return;
    far_pair both(options(1).stdin_from(feed()).stdout_to(lines()),
                  shell("exec <&-; echo closed; exec sleep 60"));
    both.start();
    CHECK(both.read_some());
    const auto refused = both.write(0, "a\n");
    const auto done = both.calls->result(refused);
    CHECK(done.what == detail::completion::kind::failed);
    CHECK_THROWS_WITH_AS(std::rethrow_exception(done.error),
                         "cohort::group::write: the worker reads no more: Broken pipe",
                         std::system_error);
    detail::send_signal(both.group, SIGKILL);
    both.end();
}

TEST_CASE("hosts streams: a write that waits is cancelled") {
    if (would_leave_threads())
        return;
    far_pair both(options(1).stdin_from(feed()), shell("exec sleep 60"));
    both.start();
    const auto id = both.write(0, std::string(1'000'000, 'x'));
    both.here->cancel(id);
    CHECK(both.calls->result(id).what == detail::completion::kind::aborted);
    detail::send_signal(both.group, SIGKILL);
    both.end();
}

}  // namespace hosts_streams_test
