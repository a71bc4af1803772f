// SPDX-License-Identifier: BSL-1.0
#include "start/exec/memory_guard.hpp"

#include "base/files/fork_held.hpp"

#include <mutex>
#include <utility>

#include <sys/prctl.h>

namespace cohort::start {
namespace {

struct guarded_starts {
    std::mutex mutex;
    int count = 0;
    bool was_dumpable = false;  // before the first of them

    /// The copy has its own memory, which no child shares, and none of these starts.
    void becomes_copy() noexcept {
        if (std::exchange(count, 0) > 0 && was_dumpable)
            ::prctl(PR_SET_DUMPABLE, 1);
    }
};

guarded_starts& starts() { return base::fork_held<guarded_starts>::get(); }

}  // namespace

memory_guard::memory_guard(bool is_needed) : is_needed_(is_needed) {
    if (!is_needed_)
        return;
    auto& all = starts();
    const std::lock_guard lock(all.mutex);
    if (all.count++ == 0)
        all.was_dumpable = ::prctl(PR_GET_DUMPABLE) == 1;
}

bool memory_guard::memory_is_dumpable() {
    auto& all = starts();
    const std::lock_guard lock(all.mutex);
    return all.count > 0 ? all.was_dumpable : ::prctl(PR_GET_DUMPABLE) == 1;
}

memory_guard::~memory_guard() {
    if (!is_needed_)
        return;
    auto& all = starts();
    const std::lock_guard lock(all.mutex);
    if (--all.count == 0 && all.was_dumpable)
        ::prctl(PR_SET_DUMPABLE, 1);
}

}  // namespace cohort::start
