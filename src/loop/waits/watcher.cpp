// SPDX-License-Identifier: BSL-1.0
#include "loop/waits/watcher.hpp"

#include "base/sys/descriptors.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>
#include <vector>

#include <sys/epoll.h>

namespace cohort::loop {
namespace {

std::atomic<watcher*> own_watcher{nullptr};

/// Where epoll has no room, what waits is served after this time, then after twice the time.
constexpr std::chrono::milliseconds first_look{10};
constexpr std::chrono::milliseconds last_look{100};

}  // namespace

watcher& watcher::own() {
    auto& runtime = loop::runtime::for_spawn();
    auto* seen = own_watcher.load(std::memory_order_acquire);
    while (seen == nullptr || &seen->runtime_ != &runtime) {
        // A forked copy leaks its parent's.
        std::unique_ptr<watcher> fresh(new watcher(runtime));
        if (own_watcher.compare_exchange_strong(seen, fresh.get(), std::memory_order_acq_rel)) {
            seen = fresh.release();
            runtime.loop().post([seen] { seen->watch(); });
        }
    }
    return *seen;
}

watcher::watcher(loop::runtime& runtime)
    : runtime_(runtime), aside_(runtime.loop()),
      callbacks_(runtime.loop(), background_thread::thread::stays) {
    std::error_code error;
    epoll_ = base::out_of_stdio(base::unique_fd(::epoll_create1(EPOLL_CLOEXEC)), error);
    if (error)
        throw std::system_error(error, "epoll_create1");
}

void watcher::watch() {
    runtime_.loop().watch_readable(epoll_.get(), [this] { look(); });
}

std::uint64_t watcher::next_ticket() noexcept {
    static constinit std::atomic<std::uint64_t> last{0};
    return ++last;
}

void watcher::arm(const std::shared_ptr<watched>& which, std::uint64_t ticket, int fd,
                  std::uint32_t events) {
    const unwatched wanted{which, fd, events};
    const std::lock_guard guard(mutex_);
    const auto error = watch(ticket, wanted);
    if (!error) {
        unwatched_.erase(ticket);
        return;
    }
    if (error.value() != ENOSPC && error.value() != ENOMEM)
        throw std::system_error(error, "epoll_ctl");
    unwatched_.insert_or_assign(ticket, wanted);
    if (!std::exchange(serves_unwatched_, true))
        runtime_.loop().post([this] { serve_unwatched(first_look); });
}

/// Has epoll watch a descriptor, if there is room now. `mutex_` is locked.
std::error_code watcher::watch(std::uint64_t ticket, const unwatched& wanted) {
    epoll_event event{};
    event.events = wanted.events;
    event.data.u64 = ticket;
    const bool is_new = watched_.try_emplace(ticket, wanted.which).second;
    const int change = is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    if (::epoll_ctl(epoll_.get(), change, wanted.fd, &event) == 0)
        return {};
    const auto error = base::last_error();
    if (is_new)
        watched_.erase(ticket);
    return error;
}

void watcher::serve_unwatched(std::chrono::milliseconds after) {
    const auto at = std::chrono::steady_clock::now() + after;
    runtime_.loop().timer().at(at, [this, after] {
        std::vector<std::shared_ptr<watched>> waiting;
        {
            const std::lock_guard guard(mutex_);
            std::erase_if(unwatched_, [&](const auto& each) {
                auto which = each.second.which.lock();
                if (!which)
                    return true;
                waiting.push_back(std::move(which));
                // Who wants one event at a time arms again, if it still waits.
                return (each.second.events & EPOLLONESHOT) != 0 || !watch(each.first, each.second);
            });
            if (waiting.empty()) {
                serves_unwatched_ = false;
                return;
            }
        }
        for (const auto& which : waiting)
            which->serve();
        serve_unwatched(std::min(2 * after, last_look));
    });
}

void watcher::forget(std::uint64_t ticket, int fd) noexcept {
    auto* const runtime = loop::runtime::own();
    auto* const mine = own_watcher.load(std::memory_order_acquire);
    if (mine == nullptr || runtime == nullptr || &mine->runtime_ != runtime)
        return;
    const std::lock_guard guard(mine->mutex_);
    mine->unwatched_.erase(ticket);
    if (mine->watched_.erase(ticket) > 0)
        (void)::epoll_ctl(mine->epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

void watcher::look() {
    std::array<epoll_event, 64> events;
    const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
    std::vector<std::shared_ptr<watched>> ready;
    {
        const std::lock_guard guard(mutex_);
        for (int i = 0; i < count; ++i)
            if (const auto found = watched_.find(events[static_cast<std::size_t>(i)].data.u64);
                found != watched_.end())
                if (auto which = found->second.lock())
                    ready.push_back(std::move(which));
    }
    for (const auto& which : ready)
        which->serve();
    watch();
}

void serve_soon(const std::shared_ptr<watched>& which) {
    watcher::own().runtime().loop().post([which] { which->serve(); });
}

void complete(const detail::receiver& to, detail::completion result) {
    if (const auto* const runtime = loop::runtime::own(); runtime && runtime->exiting())
        return;
    const auto sink = to.sink.lock();
    if (!sink || sink->complete(to.id, result) != detail::delivery::refused)
        return;
    auto& runtime = watcher::own().runtime();
    runtime.loop().post(
        [&runtime, to, result = std::move(result)] { runtime.deliver(to, result); });
}

}  // namespace cohort::loop
