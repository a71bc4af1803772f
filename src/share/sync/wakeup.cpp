// SPDX-License-Identifier: BSL-1.0
#include "share/sync/wakeup.hpp"

#include "base/files/descriptor.hpp"
#include "base/files/fork_held.hpp"
#include "base/files/name.hpp"
#include "base/files/settings.hpp"
#include "base/sys/descriptors.hpp"
#include "base/sys/fork_mark.hpp"
#include "base/sys/processes.hpp"

#include <cohort/errors.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

namespace cohort::share {
namespace {

using detail::completion;
using detail::completion_of;
using loop::watcher;

/// The wakeups of this process, so that one that arrives twice is one.
struct wakeup_table {
    std::mutex mutex;
    std::map<wakeup::identity, std::weak_ptr<wakeup>> known;
};
wakeup_table& table() { return base::fork_held<wakeup_table>::get(); }

/// What a descriptor is known by, if it is what make() makes. The kernel numbers eventfds
/// (proc_pid_fdinfo(5)), so that another process can't pass one off as another one. It does not
/// number timers, and without /proc it says nothing.
/// @throws codec_error  the descriptor is none of this kind
wakeup::identity identify(int fd, wakeup::kind what, std::uint64_t number) {
    const bool is_event = what == wakeup::kind::state;
    const std::string_view member = is_event ? "eventfd-id:" : "clockid:";
    char room[512];
    // Asking for an epoll's fdinfo may wait for the process that uses it. A link asks nobody.
    const auto length = ::readlink(base::path_of(fd).c_str(), room, sizeof room);
    const std::string_view link(room, length < 0 ? 0 : static_cast<std::size_t>(length));
    if (length >= 0 && link != (is_event ? "anon_inode:[eventfd]" : "anon_inode:[timerfd]"))
        throw codec_error(is_event ? "its descriptor is no eventfd"
                                   : "its descriptor is no timerfd");
    const auto path = fmt::format("/proc/thread-self/fdinfo/{}", fd);
    const auto text = base::read_start(path.c_str(), room);
    if (text.empty() && ::access("/proc/thread-self/fdinfo", F_OK) != 0)
        return {wakeup::known_by::drawn_number, number};
    if (text.empty() && length >= 0)  // it is there, and can't be opened now
        base::refuse("looking at the descriptor of another process' event or lock",
                     std::make_error_code(std::errc::too_many_files_open));
    const auto at = text.find(member);
    if (at == text.npos)
        throw codec_error(is_event ? "its descriptor is no eventfd"
                                   : "its descriptor is no timerfd");
    if (!is_event)
        return {wakeup::known_by::drawn_number, number};
    const std::string digits(text.substr(at + member.size()));
    return {wakeup::known_by::kernel, std::strtoull(digits.c_str(), nullptr, 10)};
}

base::unique_fd make_timer(std::error_code& error) noexcept {
    return base::out_of_stdio(
        base::unique_fd(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)), error);
}

/// Makes a timer readable. Unlike a write to an eventfd this can't block.
void ring(int timer) noexcept {
    constexpr itimerspec long_ago{{0, 0}, {0, 1}};
    (void)::timerfd_settime(timer, TFD_TIMER_ABSTIME, &long_ago, nullptr);
}

/// Whether a call would not block. Another process may have made the eventfd a blocking one, and
/// may do so again before the call.
bool is_ready(int eventfd, short events) noexcept {
    if (const int flags = ::fcntl(eventfd, F_GETFL); (flags & O_NONBLOCK) == 0)
        (void)::fcntl(eventfd, F_SETFL, flags | O_NONBLOCK);
    pollfd polled{eventfd, events, 0};
    return ::poll(&polled, 1, 0) == 1;
}

/// Sets an eventfd's count to 0, and does not wait if it is 0.
void drain(int eventfd) noexcept {
    std::uint64_t count = 0;
    const iovec all{&count, sizeof count};
    if (::preadv2(eventfd, &all, 1, -1, RWF_NOWAIT) >= 0 || errno == EAGAIN)
        return;
    // Before Linux 5.8.
    if (is_ready(eventfd, POLLIN))
        base::drain_event(eventfd);
}

completion failed_now() {
    auto failed = completion_of(completion::kind::failed);
    failed.error = std::current_exception();
    return failed;
}

}  // namespace

std::shared_ptr<wakeup> wakeup::make(kind what) {
    std::error_code error;
    auto made = what == kind::state ? base::make_eventfd(error) : make_timer(error);
    if (error)
        base::refuse(what == kind::state ? "event" : "barrier", error);
    const auto number = base::random_number();
    const auto id = identify(made.get(), what, number);
    auto fresh = std::make_shared<wakeup>(what, number, id, base::own(std::move(made)));
    const std::lock_guard guard(table().mutex);
    table().known[id] = fresh;
    return fresh;
}

std::shared_ptr<wakeup> wakeup::arrived(kind what, std::uint64_t number,
                                        const detail::attachment& descriptor) {
    if (!descriptor)
        throw codec_error("it came without its descriptor");
    const auto id = identify(*descriptor, what, number);
    std::shared_ptr<wakeup> found;  // destroyed after the lock is released
    const std::lock_guard guard(table().mutex);
    auto& known = table().known[id];
    found = known.lock();
    if (!found) {
        known = found = std::make_shared<wakeup>(what, number, id, descriptor);
    } else if (found->kind_ != what) {
        throw codec_error("an event is a barrier's, or the other way round");
    } else {
        found->enter_process();
        if (!found->descriptor_)
            found->descriptor_ = descriptor;
    }
    return found;
}

wakeup::wakeup(kind what, std::uint64_t number, identity id, detail::attachment descriptor)
    : kind_(what), number_(number), id_(id), ticket_(watcher::next_ticket()),
      generation_(base::process_generation()), descriptor_(std::move(descriptor)) {}

wakeup::~wakeup() {
    const std::lock_guard guard(table().mutex);
    if (const auto known = table().known.find(id_);
        known != table().known.end() && known->second.expired())
        table().known.erase(known);
    enter_process();
    if (descriptor_)
        watcher::forget(ticket_, *descriptor_);
}

void wakeup::enter_process() {
    if (generation_ == base::process_generation())
        return;
    new std::vector<waiter>(
        std::move(waiting_));  // leaked, because the operations are the parent's
    waiting_.clear();
    if (!base::is_open(descriptor_))
        descriptor_.reset();
    generation_ = base::process_generation();
}

detail::attachment wakeup::open_descriptor() {
    enter_process();
    if (!descriptor_)
        base::refuse("event or barrier", EBADF,
                     "this process is a forked copy, and its descriptor is closed in it; name it: "
                     "closure(f).keep(event)");
    return descriptor_;
}

detail::attachment wakeup::descriptor() {
    const std::lock_guard guard(table().mutex);
    return open_descriptor();
}

void wakeup::set() {
    detail::attachment opened;
    bool has_news = false;
    {
        const std::lock_guard guard(table().mutex);
        opened = open_descriptor();
        has_news = kind_ == kind::news && !waiting_.empty();
    }
    if (kind_ == kind::news)
        ring(*opened);
    else if (is_ready(*opened, POLLOUT))  // else it is set, as often as can be counted
        base::raise_event(*opened);
    if (has_news)  // because a timer that another process has stopped gives no event
        loop::serve_soon(shared_from_this());
}

void wakeup::clear() { drain(*descriptor()); }

void wakeup::arm(watcher& here) {
    here.arm(shared_from_this(), ticket_, *descriptor_,
             EPOLLIN | (kind_ == kind::state ? EPOLLONESHOT : EPOLLET));
}

void wakeup::wait(waiter w) {
    auto& here = watcher::own();  // before the lock is taken
    std::optional<completion> result;
    {
        const std::lock_guard guard(table().mutex);
        (void)open_descriptor();
        result = w.look();
        if (!result) {
            waiting_.reserve(waiting_.size() + 1);
            if (waiting_.empty())
                arm(here);
            waiting_.push_back(w);
        }
    }
    if (result)
        loop::complete(w.to, std::move(*result));
}

void wakeup::cancel(detail::operation_id id) noexcept {
    std::optional<completion> result;
    waiter gone;
    {
        const std::lock_guard guard(table().mutex);
        const auto found =
            std::ranges::find_if(waiting_, [id](const waiter& w) { return w.to.id == id; });
        if (generation_ != base::process_generation() || found == waiting_.end())
            return;
        gone = std::move(*found);
        waiting_.erase(found);
        result = gone.look();
        if (!result && gone.withdraw && !gone.withdraw())
            result = gone.look();
        if (waiting_.empty())
            watcher::forget(ticket_, *descriptor_);
    }
    loop::complete(gone.to, result.value_or(completion_of(completion::kind::aborted)));
}

void wakeup::serve() {
    auto& here = watcher::own();
    std::vector<std::pair<waiter, completion>> over;  // destroyed after the lock is released
    {
        const std::lock_guard guard(table().mutex);
        if (generation_ != base::process_generation())
            return;
        std::erase_if(waiting_, [&over](waiter& w) {
            auto result = w.look();
            if (result)
                over.emplace_back(std::move(w), *result);
            return result.has_value();
        });
        if (waiting_.empty()) {
            watcher::forget(ticket_, *descriptor_);
        } else if (kind_ == kind::state) {
            try {
                arm(here);
            } catch (...) {
                for (auto& w : std::exchange(waiting_, {}))
                    over.emplace_back(std::move(w), failed_now());
            }
        }
    }
    for (auto& [w, result] : over)
        loop::complete(w.to, std::move(result));
}

}  // namespace cohort::share
