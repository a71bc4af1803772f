// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "guard.hpp"
#include "reporter.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <sstream>
#include <string>

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

// Memory with which a process keeps a lock of the kernel.
namespace cohort::test {

inline int open_userfaultfd() {
    return static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK));
}

/// A page that never comes. userfaultfd(2) tells who waits for it.
class missing_page {
public:
    missing_page() : fd_(open_userfaultfd()) {
        uffdio_api api{};
        api.api = UFFD_API;
        page_ = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        uffdio_register wanted{};
        wanted.range = {reinterpret_cast<std::uintptr_t>(page_), 4096};
        wanted.mode = UFFDIO_REGISTER_MODE_MISSING;
        if (::ioctl(fd_, UFFDIO_API, &api) != 0 || ::ioctl(fd_, UFFDIO_REGISTER, &wanted) != 0)
            ::_exit(3);
    }
    missing_page(const missing_page&) = delete;
    missing_page& operator=(const missing_page&) = delete;
    ~missing_page() {
        ::munmap(page_, 4096);
        ::close(fd_);
    }
    char* address() const noexcept { return static_cast<char*>(page_); }
    /// Whether a thread waits for the page.
    bool is_awaited(int milliseconds) const {
        pollfd event{fd_, POLLIN, 0};
        return ::poll(&event, 1, milliseconds) == 1;
    }
    /// Returns when a thread waits for the page.
    void await_who_waits() const {
        (void)is_awaited(-1);
        uffd_msg message{};
        (void)!::read(fd_, &message, sizeof message);
    }
    /// Lets those go on who wait for the page.
    void come() const {
        uffdio_zeropage zero{};
        zero.range = {reinterpret_cast<std::uintptr_t>(page_), 4096};
        (void)::ioctl(fd_, UFFDIO_ZEROPAGE, &zero);
    }

private:
    int fd_;
    void* page_;
};

/// A leak_guard for cases in which another thread takes over the output loop: what that thread
/// waits with has other numbers, and nothing else may be new.
class moved_loop_guard {
public:
    ~moved_loop_guard() {
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
        std::string left;
        do
            left = guard_.leftovers(std::chrono::milliseconds(10));
        while (!is_moved(left) && std::chrono::steady_clock::now() < until);
        CHECK_MESSAGE(is_moved(left), left);
        guard_.dismiss();
    }

private:
    static bool is_moved(const std::string& left) {
        int more = 0;
        std::istringstream all(left);
        for (std::string line; std::getline(all, line);) {
            if (line.find(" -> anon_inode:[") == line.npos)
                return false;
            more += line.starts_with("open ") ? 1 : -1;
        }
        return more == 0;
    }

    leak_guard guard_;
};

inline bool can_miss_pages() {
    const int fd = open_userfaultfd();
    if (fd >= 0)
        ::close(fd);
    else
        skip("this user may not call userfaultfd(2)");
    return fd >= 0;
}

}  // namespace cohort::test
