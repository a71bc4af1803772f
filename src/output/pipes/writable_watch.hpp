// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"
#include "loop/engine/engine.hpp"

#include <memory>

namespace cohort::output {

/// Tells when a pipe takes bytes again. The loop watches for readable descriptors only; an epoll
/// instance is readable when the pipe in it is writable. Belongs to the loop's thread.
class writable_watch {
public:
    /// Calls `then` once, when `fd` can be written to or has no reader any more. `fd` must stay
    /// open until then. One watch at a time.
    void once(loop::engine& loop, int fd, loop::task then);
    /// Makes the pending call of `then` come at once, even if `fd` is closed meanwhile.
    /// @return false: it can't
    bool expedite() noexcept;

private:
    bool arm(int fd) noexcept;

    std::shared_ptr<base::unique_fd> epoll_;  // made at the first wait
    base::unique_fd always_readable_;
};

}  // namespace cohort::output
