// SPDX-License-Identifier: BSL-1.0
#include "share/cuda/lease.hpp"

#include "base/files/descriptor.hpp"
#include "base/files/settings.hpp"
#include "base/sys/descriptors.hpp"

#include <cerrno>
#include <exception>
#include <system_error>
#include <utility>

#include <poll.h>
#include <sys/epoll.h>

namespace cohort::share {

detail::attachment lease::make(std::function<void()> release) {
    // When the lease is over it is too late to learn that there is no thread.
    if (!loop::watcher::own().callbacks().start())
        base::refuse("lease of memory", EAGAIN, "the thread that releases it can't be started");
    std::error_code error;
    auto ends = base::make_pipe(error);
    if (error)
        base::refuse("lease of memory", error);
    auto writer = base::own(std::move(ends.write));
    const auto made = std::make_shared<lease>(std::move(ends.read), std::move(release));
    made->itself_ = made;
    try {
        made->watch();
    } catch (...) {
        made->itself_.reset();
        throw;
    }
    return writer;
}

lease::lease(base::unique_fd reader, std::function<void()> release)
    : reader_(std::move(reader)), ticket_(loop::watcher::next_ticket()),
      release_(std::move(release)) {}

lease::~lease() { loop::watcher::forget(ticket_, reader_.get()); }

void lease::watch() {
    loop::watcher::own().arm(shared_from_this(), ticket_, reader_.get(), EPOLLONESHOT);
}

/// Whether all writing ends of the pipe are closed.
bool lease::is_over() const noexcept {
    pollfd end{reader_.get(), 0, 0};
    return ::poll(&end, 1, 0) > 0 && (end.revents & POLLHUP) != 0;
}

void lease::serve() {
    if (!itself_)
        return;
    if (!is_over()) {
        try {
            watch();
        } catch (const std::exception&) {
            // Without memory for a watch, `release` is never called, which is safe.
        }
        return;
    }
    const auto over = std::exchange(itself_, {});
    auto& here = loop::watcher::own();
    if (here.runtime().exiting())
        return;  // what `release` needs may be gone
    here.callbacks().run(
        [over] {
            if (const auto release = std::exchange(over->release_, {}))
                release();
        },
        [] {});
}

}  // namespace cohort::share
