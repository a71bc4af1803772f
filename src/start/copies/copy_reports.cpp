// SPDX-License-Identifier: BSL-1.0
#include "start/copies/copy_reports.hpp"

#include "base/sys/descriptors.hpp"
#include "base/sys/processes.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>

#include <poll.h>
#include <unistd.h>

namespace cohort::start {

std::error_code copy_reports::open() {
    std::error_code error;
    pipe_ = base::make_pipe(error);
    return error;
}

/// Takes all reports that have come. Each is whole, because it was written at once, pipe(7).
std::error_code copy_reports::read_all() noexcept {
    std::array<protocol::copy_report, 64> some;
    for (;;) {
        const auto length = ::read(pipe_.read.get(), some.data(), sizeof some);
        if (length < 0 && errno == EINTR)
            continue;
        if (length < 0)
            return errno == EAGAIN ? std::error_code() : base::last_error();
        const auto count = static_cast<std::size_t>(length) / sizeof some[0];
        for (std::size_t i = 0; i < count; ++i)
            early_[some[i].ticket] = some[i];
        if (count < some.size())
            return {};
    }
}

void copy_reports::await(exec_result& result, std::uint32_t ticket,
                         std::atomic<int>& pidfd_slot) noexcept {
    pollfd either[] = {{pipe_.read.get(), POLLIN, 0}, {result.pidfd.get(), POLLIN, 0}};
    for (bool ended = false;; ended = either[1].revents != 0) {
        if (const auto error = read_all()) {  // without its report the result will never be known
            (void)base::send_signal(result.pidfd.get(), SIGKILL);
            result.failed = stage::clone;
            result.error = error.value();
            return;
        }
        if (const auto found = early_.extract(ticket)) {
            pidfd_slot = -1;
            const auto& report = found.mapped();
            result.failed = static_cast<stage>(report.stage);
            result.error = report.error;
            result.item = report.item;
            result.is_unguarded = report.is_unguarded != 0;
            return;
        }
        if (ended) {
            result.failed = stage::clone;
            result.error = EINTR;
            return;
        }
        while (::poll(either, 2, -1) < 0 && errno == EINTR) {
        }
    }
}

}  // namespace cohort::start
