// SPDX-License-Identifier: BSL-1.0
// How much memory the lines of workers take, however many there are.
#include "procfs.hpp"
#include "stream_support.hpp"

#include <cstddef>
#include <fstream>

namespace output_memory_test {

using namespace cohort::test;

namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;

/// Writes whole lines of 1 KiB, newlines included.
void write_lines(int, int mebibytes) {
    std::string some;
    for (int i = 0; i < 64; ++i)
        some += std::string(1'023, 'x') + '\n';
    for (int i = 0; i < mebibytes * 16; ++i)
        put(1, some);
}

/// Sends so much through a buffer of 1 MiB, to a reader that takes it as it comes.
/// @return the bytes of the lines that came
asio::awaitable<std::size_t> send_through_lines(int mebibytes) {
    auto group = co_await cohort::spawn(
        cohort::function<write_lines>(mebibytes),
        cohort::options(1).stdout_to(
            cohort::lines().buffer(mebibyte).when_full(cohort::when_full::block)));
    std::size_t bytes = 0;
    for (;;) {
        const auto batch = co_await group.output_batch();
        if (!batch)
            break;
        for (const auto& line : *batch)
            bytes += line.text.size() + 1;
    }
    (void)co_await group.join();
    co_return bytes;
}

/// In bytes; `name` is VmHWM, the peak, or VmRSS, what it is now.
std::size_t resident(const std::string& name) {
    return std::stoul(field(read_proc(::getpid(), "status"), name)) * 1'024;
}

/// The peak is from now on what it is now. @return false: this is not allowed here
bool forget_peak() {
    std::ofstream file("/proc/self/clear_refs");
    file << "5" << std::flush;
    return file.good();
}

}  // namespace

GROUP_TEST("output memory: 128 MiB through a buffer of 1 MiB take less than 4 MiB at any time") {
    if (under_asan || under_tsan)
        co_return skip("a sanitizer keeps what is freed");
    CHECK(co_await send_through_lines(8) == 8 * mebibyte);  // makes what is kept for the next group
    if (!forget_peak())
        co_return skip("the peak of this process can't be reset here");
    const auto before = resident("VmHWM");
    const auto bytes = co_await send_through_lines(128);
    const auto peak = resident("VmHWM");
    CHECK(bytes == 128 * mebibyte);
    CAPTURE((peak - before) / 1'024);
    CHECK(peak - before <= 4 * mebibyte);
}

}  // namespace output_memory_test
