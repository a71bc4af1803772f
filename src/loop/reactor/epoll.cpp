// SPDX-License-Identifier: BSL-1.0
#include "loop/reactor/reactor.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>

#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

namespace cohort::loop {

namespace {

class epoll_reactor final : public reactor_base {
public:
    epoll_reactor();

    std::error_code watch_readable(ticket id, int fd) override;
    std::error_code read(ticket id, int fd, std::span<std::byte> buffer,
                         std::uint64_t offset) override;
    const char* name() const noexcept override { return "epoll"; }

private:
    void collect(span_of_time longest) override;
    int block(span_of_time longest);

    base::unique_fd epoll_;
    std::array<epoll_event, 256> found_;
    bool exact_ = true;  // false: epoll_pwait2 (Linux 5.11) is missing or denied
};

epoll_event interest(std::uint32_t events, ticket id) {
    epoll_event wanted{};
    wanted.events = events;
    wanted.data.u64 = id;
    return wanted;
}

epoll_reactor::epoll_reactor() {
    std::error_code error;
    epoll_ = base::out_of_stdio(base::unique_fd(::epoll_create1(EPOLL_CLOEXEC)), error);
    if (error)
        throw std::system_error(error, "epoll_create1");
    auto wanted = interest(EPOLLIN | EPOLLET, wake_ticket);
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &wanted) != 0)
        throw std::system_error(errno, std::system_category(), "epoll_ctl");
}

std::error_code epoll_reactor::watch_readable(ticket id, int fd) {
    ready_.reserve(ready_.size() + 1);
    auto wanted = interest(EPOLLIN | EPOLLONESHOT, id);
    int rc = ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &wanted);
    // After its event EPOLLONESHOT leaves the registration behind, disabled. It then does no harm,
    // not even when the descriptor is closed and a child that has not yet exec'd keeps the file
    // open, so close(2) may remove it. A second watch finds it (EEXIST) and arms it again.
    if (rc != 0 && errno == EEXIST)
        rc = ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &wanted);
    if (rc != 0)
        ready_.push_back({id, -errno});
    return {};
}

std::error_code epoll_reactor::read(ticket id, int fd, std::span<std::byte> buffer,
                                    std::uint64_t offset) {
    ready_.reserve(ready_.size() + 1);
    const std::size_t size = std::min(buffer.size(), longest_read);
    ssize_t got = 0;
    do {
        errno = EINVAL;
        got = offset > last_offset ? -1
                                   : ::pread(fd, buffer.data(), size, static_cast<off_t>(offset));
    } while (got < 0 && errno == EINTR);
    ready_.push_back({id, got < 0 ? -errno : static_cast<int>(got)});
    return {};
}

int epoll_reactor::block(span_of_time longest) {
    using namespace std::chrono;
    const int room = static_cast<int>(found_.size());
    if (exact_) {
        timespec time{};
        if (longest) {
            const auto whole = duration_cast<seconds>(*longest);
            time.tv_sec = whole.count();
            time.tv_nsec = (*longest - whole).count();
        }
        const int count =
            ::epoll_pwait2(epoll_.get(), found_.data(), room, longest ? &time : nullptr, nullptr);
        if (count >= 0 || errno == EINTR)
            return count;
        exact_ = false;  // an old kernel, or a filter that does not know the call
    }
    // Rounded up, because rounded down it would return again and again in the last millisecond.
    const auto whole =
        longest ? ceil<milliseconds>(std::min(*longest, nanoseconds(hours(1)))).count() : -1;
    return ::epoll_wait(epoll_.get(), found_.data(), room, static_cast<int>(whole));
}

void epoll_reactor::collect(span_of_time longest) {
    ready_.reserve(ready_.size() + found_.size());
    const int count = block(longest);
    if (count < 0 && errno != EINTR)
        throw std::system_error(errno, std::system_category(), "epoll_wait");
    for (int i = 0; i < count; ++i)
        if (const ticket id = found_[static_cast<std::size_t>(i)].data.u64; id != wake_ticket)
            ready_.push_back({id, 0});
}

}  // namespace

std::unique_ptr<reactor> make_epoll() { return std::make_unique<epoll_reactor>(); }

}  // namespace cohort::loop
