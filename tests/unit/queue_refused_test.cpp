// SPDX-License-Identifier: BSL-1.0
// What comes with packets that are none: an end that gets much of it waits until that is closed.
#include "descriptor_limit.hpp"
#include "dispose_support.hpp"
#include "guard.hpp"
#include "procfs.hpp"
#include "raw_queue.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <doctest/doctest.h>

#include <chrono>
#include <exception>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <sys/socket.h>
#include <unistd.h>

namespace queue_refused_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using cohort::queue;
using cohort::received;

namespace {

/// A queue into which somebody puts packets that are none, with 253 descriptors each. Of so many
/// one packet is enough to make the end wait.
struct flooded_queue {
    const descriptor_limit few{open_descriptors().rbegin()->first + 600u};
    raw_queue<std::string> raw;

    void flood(int packets) {
        int ends[2];
        REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
        for (int i = 0; i < packets; ++i)
            send_raw(raw.writer, header_with(0, 253, 0), "", std::vector<int>(253, ends[0]));
        ::close(ends[0]);
        ::close(ends[1]);
    }
    void put_good() { send_raw(raw.writer, header_with(1, 0, 4), "good"); }
    /// What the gets say: "refused", the value, "nothing".
    template <class... HowLong>
    std::string get(HowLong... how_long) {
        try {
            const auto got = raw.reader.get(how_long...);
            return got ? *got : "nothing";
        } catch (const cohort::codec_error&) {
            return "refused";
        }
    }
};

/// @param is_given_away  whether another process may have the reading end, too
void check_awaited(bool is_given_away) {
    CAPTURE(is_given_away);
    flooded_queue flooded;
    std::optional<blocked_disposal> hangs(std::in_place);
    flooded.flood(2);
    flooded.put_good();
    queue<cohort::queue_reader<std::string>> carrier;
    carrier.keep_both_ends();
    if (is_given_away)
        carrier.writer().put(flooded.raw.reader);
    asio::io_context io;
    std::vector<std::string> results;
    const auto get = [&] {
        flooded.raw.whole.async_get(asio::bind_executor(
            io.get_executor(), [&](std::exception_ptr error, const received<std::string>& got) {
                results.push_back(error ? "refused" : *got);
            }));
    };
    get();
    io.run();
    io.restart();
    get();
    get();
    io.poll();
    CHECK(results == std::vector<std::string>{"refused"});
    hangs.reset();
    io.run();
    CHECK(results == std::vector<std::string>{"refused", "refused", "good"});
    (void)blocked_disposal();  // begins after all that came is closed
}

}  // namespace

TEST_CASE("queue refused: an end receives nothing while much of what it got is not closed") {
    const leak_guard guard;
    flooded_queue flooded;
    queue<int> other;
    other.keep_both_ends();
    other.writer().put(7);
    std::optional<blocked_disposal> hangs(std::in_place);
    flooded.flood(2);
    flooded.put_good();
    CHECK(flooded.get() == "refused");
    CHECK(flooded.get(0ms) == "nothing");
    CHECK(flooded.get(1ms) == "nothing");
    std::stop_source stops;
    std::thread stopper([&] { stops.request_stop(); });
    CHECK(flooded.get(stops.get_token()) == "nothing");
    stopper.join();
    CHECK(*other.reader().get(0ms) == 7);  // which the closes of others do not concern
    std::thread closer([&] { hangs.reset(); });
    CHECK(flooded.get() == "refused");
    CHECK(flooded.get() == "good");
    closer.join();
}

TEST_CASE("queue refused: an awaited get goes on when enough is closed") {
    if (under_tsan)
        return skip("the engine's thread stays, and TSan ends the forked copies of later cases");
    for (const bool is_given_away : {false, true})
        check_awaited(is_given_away);  // the first awaited calls start threads that stay
    const leak_guard guard;
    for (const bool is_given_away : {false, true})
        check_awaited(is_given_away);
}

}  // namespace queue_refused_test
