// SPDX-License-Identifier: BSL-1.0
// What a reader takes out of a pipe, and when. The loop never ends: each case has a process of its
// own.
#include "output/pipes/pipe_reader.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"
#include "sys_support.hpp"
#include "system_call_filter.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace pipe_reader_test {

using namespace cohort;
using namespace cohort::test;
using output::byte_sink;
using output::pipe_reader;
using clock_type = std::chrono::steady_clock;

namespace {

constexpr int cannot_filter = 77;

/// Takes everything, up to a bound that several readers share.
struct shared_sink {
    std::size_t bound = std::string::npos;
    std::string all;
    std::function<void()> taken;  // called when bytes were taken; may be empty
    int refused = 0;
    std::promise<void> two_refused;
    std::function<void()> left;  // called when room is left to others; may be empty
};

class sink final : public byte_sink {
public:
    explicit sink(shared_sink& shared) : shared_(shared) {}
    void take(std::string_view bytes) override {
        shared_.all += bytes;
        if (shared_.taken)
            shared_.taken();
    }
    bool has_room() override {
        if (shared_.all.size() < shared_.bound)
            return true;
        if (++shared_.refused == 2)
            shared_.two_refused.set_value();
        return false;
    }
    void leave_room() override {
        if (shared_.left)
            shared_.left();
    }
    void end(std::error_code why) override { error = why; }

    std::error_code error;

private:
    shared_sink& shared_;
};

/// A stream of a worker on a loop.
struct stream_end {
    pipe_ends pipe = make_pipe();
    std::shared_ptr<sink> to;
    std::shared_ptr<pipe_reader> reader;

    stream_end(loop::engine& loop, shared_sink& shared) : to(std::make_shared<sink>(shared)) {
        (void)::fcntl(pipe.reader.get(), F_SETFL, O_NONBLOCK);
        reader = std::make_shared<pipe_reader>(loop, std::move(pipe.reader), to,
                                               std::make_shared<std::atomic<int>>(0));
    }
    void write(const std::string& text) const {
        (void)!::write(pipe.writer.get(), text.data(), text.size());
    }
};

/// Ends the stream. @return whether the reader says that it has ended
bool ends(loop::engine& loop, stream_end& of) {
    std::promise<void> over;
    loop.post([&] { of.reader->worker_ended([&] { over.set_value(); }); });
    return over.get_future().wait_for(std::chrono::milliseconds(bound_ms)) ==
           std::future_status::ready;
}

void holds(const std::function<bool(loop::engine&, shared_sink&)>& body, long denied = -1,
           int error = 0) {
    if (under_tsan)
        return skip(no_threads_in_copies);
    const int result = in_fork([&] {
        if (denied >= 0 && !deny(denied, error))
            return cannot_filter;
        auto& loop = *new loop::engine;
        loop.start();
        return body(loop, *new shared_sink) ? 0 : 1;
    });
    if (result == cannot_filter)
        return skip("no seccomp filter can be installed here");
    CHECK(result == 0);
}

}  // namespace

TEST_CASE("pipe reader: what is in the pipe at the worker's end is taken also without FIONREAD") {
    holds(
        [](auto& loop, auto& shared) {
            stream_end one(loop, shared);
            one.write("row\n");
            return ends(loop, one) && shared.all == "row\n" && !one.to->error;
        },
        SYS_ioctl, EPERM);
}

TEST_CASE("pipe reader: bytes that another reader has taken meanwhile are no error") {
    holds(
        [](auto& loop, auto& shared) {
            stream_end one(loop, shared);
            one.write("row\n");
            return ends(loop, one) && shared.all.empty() && !one.to->error;
        },
        SYS_read, EAGAIN);
}

TEST_CASE("pipe reader: another error of the last read is reported") {
    holds(
        [](auto& loop, auto& shared) {
            stream_end one(loop, shared);
            one.write("row\n");
            return ends(loop, one) && one.to->error == std::errc::io_error;
        },
        SYS_read, EIO);
}

TEST_CASE("pipe reader: a stream is not given up while its calls wait for those of others") {
    holds([](auto& loop, auto& shared) {
        stream_end one(loop, shared);
        one.write("row\n");
        std::promise<void> over;
        loop.post([&] {
            one.reader->worker_ended([&] { over.set_value(); });
            for (int looks = 0; looks < 3; ++looks)  // the call begins after this task
                one.reader->look();
        });
        return over.get_future().wait_for(std::chrono::milliseconds(bound_ms)) ==
                   std::future_status::ready &&
               shared.all == "row\n" && !one.to->error;
    });
}

TEST_CASE("pipe reader: streams with one sink ask for room before each of them reads") {
    holds([](auto& loop, auto& shared) {
        stream_end one(loop, shared);
        stream_end two(loop, shared);
        const std::string text(60'000, 'x');  // less than a pipe holds
        shared.bound = 30'000;
        shared.taken = [&] {
            one.write("x");
            two.write("x");
        };
        one.write(text);
        two.write(text);
        loop.post([&] {
            one.reader->begin();
            two.reader->begin();
        });
        return shared.two_refused.get_future().wait_for(std::chrono::milliseconds(bound_ms)) ==
                   std::future_status::ready &&
               shared.all.size() == text.size();
    });
}

TEST_CASE("pipe reader: a stream leaves its turn to others if another process emptied its pipe") {
    holds([](auto& loop, auto& shared) {
        stream_end one(loop, shared);
        // As a worker can: it opens its own stdout for reading.
        const auto path = "/proc/self/fd/" + std::to_string(one.pipe.writer.get());
        const base::unique_fd reader(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
        shared.bound = 0;
        std::promise<void> waits, left;
        shared.left = [&] { waits.set_value(); };
        one.write("row\n");
        loop.post([&] { one.reader->begin(); });
        const auto is_done = [](std::promise<void>& what) {
            return what.get_future().wait_for(std::chrono::milliseconds(bound_ms)) ==
                   std::future_status::ready;
        };
        char bytes[8];
        if (!is_done(waits) || ::read(reader.get(), bytes, sizeof bytes) != 4)
            return false;
        loop.post([&] {
            shared.bound = 1;
            shared.left = [&] { left.set_value(); };
            (void)one.reader->go_on();
        });
        return is_done(left) && shared.all.empty();
    });
}

TEST_CASE("pipe reader: what a daemon floods its pipe with is read slowly") {
    holds([](auto& loop, auto& shared) {
        stream_end one(loop, shared);
        if (!ends(loop, one))
            return false;
        const auto begin = clock_type::now();
        for (int i = 0; i < 20; ++i)
            one.write(std::string(65'536, 'x'));
        return clock_type::now() - begin > std::chrono::milliseconds(100) && shared.all.empty();
    });
}

}  // namespace pipe_reader_test
