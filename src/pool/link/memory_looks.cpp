// SPDX-License-Identifier: BSL-1.0
#include "pool/link/memory_looks.hpp"

#include "base/sys/processes.hpp"
#include "output/targets/call_threads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

namespace cohort::pools {
namespace {

using namespace std::chrono_literals;

constexpr auto between_looks = 100ms;    // a look takes about 11 us
constexpr auto between_long_looks = 1s;  // 0.5 ms where the worker has 64 MiB

/// A line such as "RssAnon:     1234 kB". @return in bytes; 0: there is none
std::uint64_t kilobytes_in(std::string_view text, std::string_view name) noexcept {
    for (std::size_t at = 0; (at = text.find(name, at)) != std::string_view::npos; ++at) {
        if (at > 0 && text[at - 1] != '\n')
            continue;
        const auto from = text.find_first_of("0123456789", at + name.size());
        if (from == std::string_view::npos)
            return 0;
        std::uint64_t count = 0;
        std::from_chars(text.data() + from, text.data() + text.size(), count);
        return count << 10;
    }
    return 0;
}

std::uint64_t less(std::uint64_t a, std::uint64_t b) noexcept { return a > b ? a - b : 0; }

}  // namespace

void memory_looks::begin(std::weak_ptr<const void> pool,
                         base::callback<void(worker_id, std::uint64_t)> found) {
    pool_ = std::move(pool);
    found_ = std::move(found);
}

void memory_looks::is_ready(worker_id worker, pid_t pid, base::callback<void()> go_on) {
    if (!is_wanted_)
        return go_on();
    auto& of = workers_[worker];
    of.pid = pid;
    of.go_on = std::move(go_on);
    look(worker);
}

void memory_looks::finished(worker_id worker) {
    const auto at = workers_.find(worker);
    if (at == workers_.end())
        return;
    auto& of = at->second;
    if (of.later)
        loop_.timer().cancel(*std::exchange(of.later, std::nullopt));
    const auto now = std::chrono::steady_clock::now();
    if (of.last + between_looks <= now)
        return look(worker);
    // When it has been idle for a while. The next task comes before, or nothing wakes any more.
    of.later = loop_.timer().at(now + between_looks, [this, pool = pool_, worker] {
        if (const auto kept = pool.lock())
            if (const auto found = workers_.find(worker); found != workers_.end()) {
                found->second.later.reset();
                look(worker);
            }
    });
}

void memory_looks::ended(worker_id worker) {
    const auto at = workers_.find(worker);
    if (at == workers_.end())
        return;
    if (at->second.later)
        loop_.timer().cancel(*at->second.later);
    workers_.erase(at);
}

void memory_looks::look(worker_id worker) {
    auto& of = workers_.at(worker);
    if (std::exchange(of.goes_on, true)) {
        of.again = true;  // it may have been before the end of the task
        return;
    }
    of.last = std::chrono::steady_clock::now();
    const bool with_changed =
        shares_private_ && (of.go_on || of.last_changed + between_long_looks <= of.last);
    if (with_changed)
        of.last_changed = of.last;
    const auto seen = std::make_shared<memory>();
    output::call_threads::of(loop_).run(
        [seen, pid = of.pid, with_changed] { *seen = read(pid, with_changed); },
        [this, pool = pool_, worker, seen] {
            if (const auto kept = pool.lock())
                found(worker, *seen);
        });
}

void memory_looks::found(worker_id worker, const memory& now) {
    const auto at = workers_.find(worker);
    if (at == workers_.end())
        return;
    auto& of = at->second;
    of.goes_on = false;
    if (std::exchange(of.again, false))
        look(worker);
    if (const auto go_on = std::exchange(of.go_on, nullptr)) {
        of.first = now;
        return go_on();
    }
    if (now.anonymous == 0)
        return;  // it is ending, or nothing could be read
    if (of.first.anonymous == 0)
        of.first = now;
    auto added = less(now.anonymous, of.first.anonymous);
    if (now.changed != 0)
        added = std::max(added, less(now.changed, of.first.changed));
    found_(worker, added);
}

memory_looks::memory memory_looks::read(pid_t pid, bool with_changed) noexcept {
    memory seen;
    char room[4096];
    const auto status = base::read_start(fmt::format("/proc/{}/status", pid).c_str(), room);
    seen.anonymous = kilobytes_in(status, "RssAnon:");
    const auto shared = kilobytes_in(status, "RssShmem:");
    if (with_changed) {
        const auto all = base::read_start(fmt::format("/proc/{}/smaps_rollup", pid).c_str(), room);
        seen.changed = less(kilobytes_in(all, "Private_Dirty:"), shared);
    }
    return seen;
}

}  // namespace cohort::pools
