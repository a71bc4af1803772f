// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"
#include "loop/waits/watcher.hpp"

#include <cohort/detail/registration.hpp>

#include <cstdint>
#include <functional>
#include <memory>

namespace cohort::share {

/// Tells this process when nobody uses something any more. Each user, in any process, holds a
/// descriptor of a pipe's writing end. The kernel closes those of a process that is killed and of a
/// message that nobody receives. The pipe's reading end, here, then comes to its end.
class lease : public loop::watched, public std::enable_shared_from_this<lease> {
public:
    /// Has `release` called, once, on a thread for such work, which this call starts and which
    /// stays: `release` may wait for a device, and the engine may not.
    /// @return what users hold
    /// @throws sharing_error, std::system_error  `release` is not called then
    static detail::attachment make(std::function<void()> release);

    lease(base::unique_fd reader, std::function<void()> release);
    lease(const lease&) = delete;
    lease& operator=(const lease&) = delete;
    ~lease() override;
    void serve() override;

private:
    void watch();
    bool is_over() const noexcept;

    const base::unique_fd reader_;
    const std::uint64_t ticket_;
    std::function<void()> release_;
    std::shared_ptr<lease> itself_;  // until its end, because the watcher does not keep it
};

}  // namespace cohort::share
