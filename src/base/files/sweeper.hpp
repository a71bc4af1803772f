// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/threads.hpp"

#include <cstdint>
#include <mutex>
#include <set>
#include <string>

#include <sys/types.h>

namespace cohort::base {

/// Retries the removal of names that were in use when this process released them: by another
/// process that may be killed, or by a message that may never be read. No event shows when the last
/// lock of a file is gone, so a thread tries again, with longer and longer pauses. The thread lives
/// only while there are such names. In a worker they are left to its parent, which sweeps when the
/// worker has ended. Thread-safe.
class sweeper {
public:
    /// Removes a name if nobody uses its memory. Else notes it.
    void release(const std::string& name) noexcept;
    /// Looks for unused names of the session soon, because a message may have been dropped that
    /// held one which this process does not know. Looks a few times while any are used, because
    /// the kernel may close what was in the message a moment later. Does nothing where nobody has
    /// made names.
    void ask() noexcept;
    /// ask(), if a file that was closed has its name where the library's names are.
    void closed(dev_t device) noexcept;
    /// Tries all noted names now.
    void sweep_left();

    std::mutex mutex;  // see fork_held

private:
    void renew() noexcept;
    void start_if_none() noexcept;
    void work() noexcept;
    bool look();

    std::uint64_t generation_ = 0;  // of the process that the rest belongs to
    std::set<std::string> left_;
    int looks_ = 0;  // for names that are not noted
    bool has_thread_ = false;
    base::futex news_ = 0;
};

/// The sweeper of this process.
sweeper& names_sweeper();

}  // namespace cohort::base
