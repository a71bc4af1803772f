// SPDX-License-Identifier: BSL-1.0
#include "sync/wakeup.hpp"

#include "share/descriptor.hpp"
#include "share/fork_held.hpp"
#include "share/limits.hpp"
#include "share/random.hpp"
#include "sys/descriptors.hpp"
#include "sys/fork_mark.hpp"

#include <cohort/errors.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <iterator>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

namespace cohort::sync {
namespace {

using detail::completion;
using detail::completion_of;
using waits::watcher;

/// The wakeups of this process, so that one that arrives twice is one.
struct wakeup_table {
    std::mutex mutex;
    std::map<std::uint64_t, std::weak_ptr<wakeup>> by_number;
};
wakeup_table& table() { return share::fork_held<wakeup_table>::get(); }

/// Whether a descriptor that came from another process is an eventfd. Without /proc this can't be
/// told.
bool is_eventfd(int fd) {
    char target[64];
    const auto length =
        ::readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), target, sizeof target);
    return (length < 0 && errno == ENOENT) ||
           (length > 0 &&
            std::string_view(target, static_cast<std::size_t>(length)) == "anon_inode:[eventfd]");
}

/// Whether a call would not block. Another process may have made the eventfd a blocking one.
bool is_ready(int eventfd, short events) noexcept {
    if (const int flags = ::fcntl(eventfd, F_GETFL); (flags & O_NONBLOCK) == 0)
        (void)::fcntl(eventfd, F_SETFL, flags | O_NONBLOCK);
    pollfd polled{eventfd, events, 0};
    return ::poll(&polled, 1, 0) == 1;
}

completion failed_now() {
    auto failed = completion_of(completion::kind::failed);
    failed.error = std::current_exception();
    return failed;
}

}  // namespace

std::shared_ptr<wakeup> wakeup::make(kind what) {
    std::error_code error;
    auto made = sys::make_eventfd(error);
    if (error)
        share::refuse("event", error);
    const auto number = share::random_number();
    auto fresh = std::make_shared<wakeup>(what, number, share::own(std::move(made)));
    const std::lock_guard guard(table().mutex);
    table().by_number[number] = fresh;
    return fresh;
}

std::shared_ptr<wakeup> wakeup::arrived(kind what, std::uint64_t number,
                                        const detail::attachment& descriptor) {
    if (!descriptor || !is_eventfd(*descriptor))
        throw codec_error("its descriptor is no eventfd");
    std::shared_ptr<wakeup> found;  // destroyed after the lock is released
    const std::lock_guard guard(table().mutex);
    auto& known = table().by_number[number];
    found = known.lock();
    if (!found) {
        known = found = std::make_shared<wakeup>(what, number, descriptor);
    } else if (found->kind_ != what) {
        throw codec_error("an event is a barrier's, or the other way round");
    } else if (found->generation_ != sys::process_generation() || !found->descriptor_) {
        new detail::attachment(std::move(found->descriptor_));  // its number may be in use again
        new std::vector<waiter>(std::move(found->waiting_));    // of the parent
        found->waiting_.clear();
        found->generation_ = sys::process_generation();
        found->descriptor_ = descriptor;
    }
    return found;
}

wakeup::wakeup(kind what, std::uint64_t number, detail::attachment descriptor)
    : kind_(what), number_(number), ticket_(watcher::next_ticket()),
      generation_(sys::process_generation()), descriptor_(std::move(descriptor)) {}

wakeup::~wakeup() {
    const std::lock_guard guard(table().mutex);
    if (const auto known = table().by_number.find(number_);
        known != table().by_number.end() && known->second.expired())
        table().by_number.erase(known);
    if (generation_ == sys::process_generation()) {
        watcher::forget(ticket_, *descriptor_);
        return;
    }
    new detail::attachment(std::move(descriptor_));
    new std::vector<waiter>(std::move(waiting_));
}

detail::attachment wakeup::open_descriptor() const {
    if (generation_ != sys::process_generation())
        share::refuse("event or barrier", EBADF,
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
    const std::uint64_t one = 1;
    if (is_ready(*opened, POLLOUT))  // else it is set, as often as can be counted
        (void)!::write(*opened, &one, sizeof one);
    if (has_news)  // of which an eventfd that another process has filled does not tell
        waits::serve_soon(shared_from_this());
}

void wakeup::clear() {
    const auto opened = descriptor();
    std::uint64_t count = 0;
    if (is_ready(*opened, POLLIN))
        (void)!::read(*opened, &count, sizeof count);
}

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
        waits::complete(w.to, std::move(*result));
}

void wakeup::cancel(detail::operation_id id) noexcept {
    std::optional<completion> result;
    waiter gone;
    {
        const std::lock_guard guard(table().mutex);
        const auto found =
            std::ranges::find_if(waiting_, [id](const waiter& w) { return w.to.id == id; });
        if (generation_ != sys::process_generation() || found == waiting_.end())
            return;
        gone = std::move(*found);
        waiting_.erase(found);
        result = gone.look();
        if (!result && gone.withdraw && !gone.withdraw())
            result = gone.look();
        if (waiting_.empty())
            watcher::forget(ticket_, *descriptor_);
    }
    waits::complete(gone.to, result.value_or(completion_of(completion::kind::aborted)));
}

void wakeup::serve() {
    auto& here = watcher::own();
    std::vector<std::pair<waiter, completion>> over;  // destroyed after the lock is released
    {
        const std::lock_guard guard(table().mutex);
        if (generation_ != sys::process_generation())
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
        waits::complete(w.to, std::move(result));
}

}  // namespace cohort::sync
