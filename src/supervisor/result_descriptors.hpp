// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "sys/unique_fd.hpp"

#include <cohort/detail/registration.hpp>

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace cohort::supervisor {

/// The descriptors that results of a group's workers hold. Each worker sends them before it notes
/// its result. Belongs to the engine's thread, and never waits.
class result_descriptors {
public:
    /// @param socket   shared by all workers of the group; tells senders, see sys::tell_sender()
    /// @param workers  how many the group has
    result_descriptors(sys::unique_fd socket, int workers) noexcept
        : socket_(std::move(socket)), workers_(workers) {}

    /// What one worker has sent. Other processes can't send in its name.
    /// @param lost  whether descriptors were lost because this process may have no more
    std::vector<detail::attachment> take(int index, pid_t pid, bool& lost);

private:
    struct received {
        std::vector<detail::attachment> descriptors;
        bool lost = false;
    };
    bool receive();

    sys::unique_fd socket_;
    int workers_;
    std::map<std::pair<int, pid_t>, received> received_;  // by what the sender says, and who it is
};

}  // namespace cohort::supervisor
