// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "sys_support.hpp"
#include "system_call_filter.hpp"

#include <atomic>
#include <cerrno>
#include <functional>
#include <thread>
#include <utility>

#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

namespace cohort::test {

/// Asks before each call of one system call. This applies to the thread that calls begin(), and to
/// its children. A thread of this object answers the kernel (seccomp_unotify(2)), so the object
/// must outlive all callers.
class asked_calls {
public:
    /// @param error_of  with which error the caller's call fails; 0: it is let through
    asked_calls(long number, std::function<int(pid_t caller)> error_of)
        : number_(number), error_of_(std::move(error_of)), answering_([this] { answer(); }) {}
    asked_calls(const asked_calls&) = delete;
    asked_calls& operator=(const asked_calls&) = delete;
    ~asked_calls() {
        over_.writer.reset();
        begun_.writer.reset();
        answering_.join();
    }

    /// Begins, for the calling thread. @return false: this host does not allow it
    bool begin() {
        listener_.reset(
            filter_calls(number_, SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER));
        char byte = 0;
        const iovec one{&byte, 1};  // write(2) itself may be what is to fail
        return listener_ && ::writev(begun_.writer.get(), &one, 1) == 1;
    }

private:
    void answer() {
        char byte;
        if (::read(begun_.reader.get(), &byte, 1) != 1)
            return;
        pollfd either[] = {{listener_.get(), POLLIN, 0}, {over_.reader.get(), POLLIN, 0}};
        while (::poll(either, 2, -1) > 0 && either[1].revents == 0) {
            // Before Linux 6.11 the next call would wait for ever when no caller is left.
            if ((either[0].revents & POLLIN) == 0)
                return;
            seccomp_notif call{};
            if (::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) {
                if (errno == ENOENT || errno == EINTR)  // the caller has died meanwhile
                    continue;
                return;
            }
            seccomp_notif_resp reply{};
            reply.id = call.id;
            reply.error = -error_of_(static_cast<pid_t>(call.pid));
            if (reply.error == 0)
                reply.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
            ::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_SEND, &reply);
        }
    }

    const long number_;
    const std::function<int(pid_t)> error_of_;
    base::unique_fd listener_;
    pipe_ends begun_ = make_pipe();
    pipe_ends over_ = make_pipe();
    std::thread answering_;
};

/// Makes the first `times` calls of one system call fail; later calls are let through.
class injected_failure {
public:
    injected_failure(long number, int error, int times)
        : calls_(number, [this, error, times](pid_t) {
              if (count_ == times)
                  return 0;
              ++count_;
              return error;
          }) {}

    /// See asked_calls.
    bool begin() { return calls_.begin(); }
    /// How many calls have failed.
    int count() const { return count_; }

private:
    std::atomic<int> count_ = 0;
    asked_calls calls_;
};

inline constexpr const char* no_injection = "skipped: no seccomp listener is to be had here";

}  // namespace cohort::test
