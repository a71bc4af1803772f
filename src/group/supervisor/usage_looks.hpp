// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"
#include "loop/waits/waiters.hpp"
#include "start/cgroup/worker_cgroup.hpp"

#include <cohort/detail/border.hpp>

#include <memory>
#include <system_error>
#include <vector>

#include <sys/types.h>

namespace cohort::groups {

/// A worker at whose use of resources somebody looks.
struct looked_at {
    int index = 0;
    pid_t pid = 0;
    base::unique_fd pidfd;  // of its own, because the worker may be reaped meanwhile
    std::shared_ptr<const start::worker_cgroup> cgroup;  // null: it has none of its own
};

/// The end of an operation that could not learn what workers use. @throws std::bad_alloc
detail::completion failed_usage(std::error_code error);

/// The operations that wait for what workers use. /proc and cgroups are read on the call threads,
/// because a read may hang. Belongs to the engine's thread.
class usage_looks {
public:
    explicit usage_looks(loop::runtime& runtime) noexcept : runtime_(runtime) {}
    usage_looks(const usage_looks&) = delete;
    usage_looks& operator=(const usage_looks&) = delete;

    /// Those of a process. Made if need be and leaked on purpose.
    static usage_looks& of(loop::runtime& runtime);

    /// Completes `to` with what these workers use.
    /// @param error  there was no descriptor for one of them: it fails with this
    void ask(std::vector<looked_at> workers, std::error_code error, detail::receiver to);
    /// Ends an operation with operation_aborted now. @return whether it waited here
    bool stop_waiting(detail::operation_id id);

private:
    loop::runtime& runtime_;
    std::vector<std::shared_ptr<loop::waiters>> looks_;  // one operation each
};

}  // namespace cohort::groups
