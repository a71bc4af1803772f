// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "loop/engine/engine.hpp"
#include "output/targets/files.hpp"
#include "output/targets/target.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"
#include "scratch.hpp"
#include "sys_support.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

/// Helpers for the tests of targets. The engine that a target reports to never ends: each case has
/// a process of its own, and tells by its exit code how it went.
namespace target_test {

using namespace cohort;
using namespace cohort::test;
using output::target;
using output::target_settings;
using clock_type = std::chrono::steady_clock;
namespace fs = std::filesystem;

inline constexpr auto bound = std::chrono::milliseconds(bound_ms);
inline constexpr std::size_t more_than_a_pipe = 100'000;  // and less than a writer takes at once

/// Lines of a worker, read at `time`; the wall clock said `wall`.
inline std::shared_ptr<const detail::line_run> lines(
    int index, std::string text, clock_type::time_point time = clock_type::now(),
    std::chrono::system_clock::time_point wall = std::chrono::system_clock::now()) {
    auto run = std::make_shared<detail::line_run>();
    run->index = index;
    run->time = time;
    run->wall = wall;
    for (std::size_t begin = 0; begin < text.size();) {
        const auto newline = text.find('\n', begin);
        const bool is_whole = newline != text.npos;
        const auto end = is_whole ? newline + 1 : text.size();
        run->lines.push_back({static_cast<std::uint32_t>(end - begin),
                              static_cast<std::uint8_t>(is_whole ? 1 : 0), is_whole});
        begin = end;
    }
    run->text = std::move(text);
    return run;
}

/// `size` bytes, in lines of 100.
inline std::string long_text(std::size_t size) {
    std::string text;
    while (text.size() < size)
        text += std::string(99, 'x') + '\n';
    return text;
}

/// The loop of this process, and what the case finds out.
class world {
public:
    world() { loop.start(); }

    /// A claim of the case. Its line is printed if it is wrong.
    void expect(bool claim, std::source_location where = std::source_location::current()) {
        if (claim)
            return;
        std::fprintf(stderr, "target_test.cpp:%u: wrong\n", where.line());
        wrong_ = true;
    }
    int result() const { return wrong_ ? 1 : 0; }

    /// Runs it on the loop and waits for it.
    void run(const std::function<void()>& what,
             std::source_location where = std::source_location::current()) {
        auto done = std::make_shared<std::promise<void>>();
        auto is_done = done->get_future();
        loop.post([&what, done] {
            what();
            done->set_value();
        });
        expect(is_done.wait_for(bound) == std::future_status::ready, where);
    }
    /// A task for a target, and when it was called.
    struct called {
        std::shared_ptr<std::promise<bool>> on_loop = std::make_shared<std::promise<bool>>();
        std::future<bool> future = on_loop->get_future();

        loop::task task() const {
            return [on_loop = on_loop] { on_loop->set_value(loop::engine::is_this_thread()); };
        }
        bool comes() { return future.wait_for(bound) == std::future_status::ready && future.get(); }
        bool is_missing() { return future.wait_for(bound * 0) == std::future_status::timeout; }
    };
    /// Waits until all that was added has been written.
    void flush(target& to, std::source_location where = std::source_location::current()) {
        called written;
        run([&] { to.when_written(written.task()); }, where);
        expect(written.comes(), where);
    }
    void add(target& to, std::shared_ptr<const detail::line_run> run_of_lines,
             when_full full = when_full::block) {
        run([&] { to.add(std::move(run_of_lines), full); });
    }

    loop::engine& loop = *new loop::engine;

private:
    bool wrong_ = false;
};

/// Runs the body in a copy of this process; it gets the world.
template <class Body>
bool holds(Body body) {
    if (cohort::test::under_tsan) {
        cohort::test::skip("TSan supports no new threads after a fork of a program with threads");
        return true;
    }
    return in_fork([&] {
               auto& w = *new world;
               body(w);
               return w.result();
           }) == 0;
}

/// Whether the text is as the shape, in which '#' stands for a digit.
inline bool is_like(std::string_view text, std::string_view shape) {
    return std::ranges::equal(text, shape, [](char found, char wanted) {
        return wanted == '#' ? found >= '0' && found <= '9' : found == wanted;
    });
}

inline target_settings named(std::string name) {
    target_settings settings;
    settings.name = std::move(name);
    return settings;
}

/// Reads until `size` bytes have come or the pipe ends.
inline std::string read_from(const base::unique_fd& reader, std::size_t size = std::string::npos) {
    std::string text;
    char room[4096];
    while (text.size() < size && await_event(reader.get())) {
        const auto got = ::read(reader.get(), room, std::min(sizeof room, size - text.size()));
        if (got <= 0)
            break;
        text.append(room, static_cast<std::size_t>(got));
    }
    return text;
}

/// Waits until a claim is true, of which no event tells.
template <class Claim>
bool comes_true(Claim claim) {
    const auto until = clock_type::now() + bound;
    while (!claim())
        if (clock_type::now() > until)
            return false;
        else
            std::this_thread::yield();
    return true;
}

/// Waits until a writer hangs in its write: the pipe has no room.
inline bool is_full(const base::unique_fd& writer) {
    pollfd polled{writer.get(), POLLOUT, 0};
    return comes_true([&] { return ::poll(&polled, 1, 0) == 0; });
}

inline base::unique_fd new_file(const std::string& path) {
    std::error_code error;
    return output::open_output(AT_FDCWD, path, output::old_text::is_dropped, error);
}

}  // namespace target_test
