// SPDX-License-Identifier: BSL-1.0
#include "group/supervisor/rest_of_group.hpp"

#include "start/guardian/program/process_groups.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <memory>
#include <utility>
#include <vector>

#include <unistd.h>

namespace cohort::groups {

namespace {

using namespace std::chrono_literals;

// The pause between looks: most killed processes are gone in a moment.
constexpr std::chrono::milliseconds first_pause = 1ms;
constexpr std::chrono::milliseconds longest_pause = 50ms;
/// After such a pause /proc is asked too: zombies hold nothing, and where the init of a container
/// does not reap them they stay for ever.
constexpr std::chrono::milliseconds pause_before_proc = 4ms;

/// Whether /proc shows a live process in the group. One read of /proc answers all that were asked
/// before it, because a read takes as long as the host has processes.
bool shows_members(pid_t leader, loop::time_point asked) {
    thread_local loop::time_point read_at{};
    thread_local std::vector<start::group_and_session> live;
    if (read_at <= asked) {
        read_at = std::chrono::steady_clock::now();
        live.clear();
        start::for_each_process([](const start::group_and_session& process) {
            if (process.group != 0 && !process.has_ended)
                live.push_back(process);
        });
    }
    // Or of a session that the worker has made.
    return std::ranges::any_of(live, [leader, session = ::getsid(0)](const auto& process) {
        return process.group == leader &&
               (process.session == session || process.session == leader);
    });
}

struct rest_of_group {
    rest_of_group(loop::runtime& with, pid_t of, base::callback<bool()> left,
                  base::callback<void()> over)
        : runtime(with), leader(of), is_left(std::move(left)), then(std::move(over)) {}

    loop::runtime& runtime;
    pid_t leader;
    base::callback<bool()> is_left;
    base::callback<void()> then;  // empty: it was called
    loop::timer_id limit{};
    std::chrono::milliseconds pause = first_pause;
    bool is_asked = false;  // /proc is
    // Shared with the background thread:
    bool lives = true;
    std::atomic<bool> is_over = false;

    void complete() {
        is_over = true;
        runtime.loop().timer().cancel(limit);
        is_left = {};
        std::exchange(then, {})();
    }
};

/// Many ends may wait for that thread. So the looks go on, and what is over is not asked for.
void ask_proc(const std::shared_ptr<rest_of_group>& rest) {
    if (std::exchange(rest->is_asked, true))
        return;
    rest->runtime.cgroups().run(
        [rest, asked = std::chrono::steady_clock::now()] {
            if (!rest->is_over)
                rest->lives = shows_members(rest->leader, asked);
        },
        [rest] {
            rest->is_asked = false;
            if (rest->then && !rest->lives)
                rest->complete();
        });
}

void look(const std::shared_ptr<rest_of_group>& rest) {
    if (!rest->then)
        return;
    if (!rest->is_left())
        return rest->complete();
    const auto pause = std::exchange(rest->pause, std::min(2 * rest->pause, longest_pause));
    rest->runtime.loop().timer().at(std::chrono::steady_clock::now() + pause, [rest, pause] {
        if (pause >= pause_before_proc)
            ask_proc(rest);
        look(rest);
    });
}

}  // namespace

void kill_rest_of_group(pid_t leader) {
    const bool is_free = ::kill(leader, 0) != 0 && errno == ESRCH;
    if (is_free && ::kill(-leader, 0) == 0 &&
        shows_members(leader, std::chrono::steady_clock::now()))
        ::kill(-leader, SIGKILL);
}

void await_rest_of_group(loop::runtime& runtime, pid_t leader, base::callback<bool()> is_left,
                         loop::time_point until, base::callback<void()> then) {
    if (!is_left())
        return then();
    auto rest =
        std::make_shared<rest_of_group>(runtime, leader, std::move(is_left), std::move(then));
    rest->limit = runtime.loop().timer().at(until, [rest] { rest->complete(); });
    look(rest);
}

}  // namespace cohort::groups
