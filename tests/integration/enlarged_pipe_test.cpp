// SPDX-License-Identifier: BSL-1.0
#include "stream_support.hpp"

#include <cstdint>
#include <string>

#include <fcntl.h>
#include <unistd.h>

namespace enlarged_pipe_test {

using namespace cohort::test;

namespace {

/// Makes its pipe larger than this program has made it, and fills it.
std::uint64_t fill_enlarged_pipe(int) {
    (void)::fcntl(1, F_SETPIPE_SZ, 1 << 20);
    (void)::fcntl(1, F_SETFL, O_NONBLOCK);
    const auto line = std::string(999, 'x') + "\n";
    std::uint64_t wrote = 0;
    for (ssize_t now = 0; (now = ::write(1, line.data(), line.size())) > 0;)
        wrote += static_cast<std::uint64_t>(now);
    return wrote;
}

}  // namespace

GROUP_TEST(
    "enlarged pipe: what a worker leaves at its end has the bound of the pipe as it was made") {
    constexpr std::size_t bound = 65'536;
    constexpr std::size_t pipe_capacity = 65'536;
    constexpr std::size_t one_read = 65'536;
    auto group =
        co_await cohort::spawn(cohort::function<fill_enlarged_pipe>(),
                               cohort::options(1).stdout_to(cohort::lines().buffer(bound).when_full(
                                   cohort::when_full::block)));
    const auto report = co_await group.wait();
    std::uint64_t got = 0, lost = 0;
    while (const auto line = co_await group.output()) {
        got += line->text.size() + (line->complete ? 1 : 0);
        lost += line->lost_before;
    }
    CHECK(got <= bound + pipe_capacity + 2 * one_read);
    CHECK(got + lost == report.outcomes.front().result<std::uint64_t>());
}

}  // namespace enlarged_pipe_test
