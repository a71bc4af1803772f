// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "sys/patient_containers.hpp"
#include "sys/unique_fd.hpp"

#include <cohort/detail/registration.hpp>

#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace cohort::detail::inline v0_1 {

/// The descriptors of one result. A worker has chosen them, and any call on one may wait, even
/// fstat(2) or close(2): so the engine's thread makes none.
class arrived_descriptors {
public:
    explicit arrived_descriptors(std::vector<sys::unique_fd> came) noexcept
        : came_(std::move(came)) {}
    arrived_descriptors(const arrived_descriptors&) = delete;
    arrived_descriptors& operator=(const arrived_descriptors&) = delete;
    ~arrived_descriptors();

    /// For the thread that takes the result.
    std::span<const attachment> owned();

private:
    std::mutex mutex_;
    std::vector<sys::unique_fd> came_;  // until owned()
    std::vector<attachment> owned_;
};

}  // namespace cohort::detail::inline v0_1

namespace cohort::supervisor {

/// The descriptors that results of a group's workers hold. Each worker sends them before it notes
/// its result. Belongs to the engine's thread, and never waits.
class result_descriptors {
public:
    /// @param socket   shared by all workers of the group; tells senders, see sys::tell_sender()
    /// @param workers  how many the group has
    result_descriptors(sys::unique_fd socket, int workers) noexcept
        : socket_(std::move(socket)), workers_(workers) {}
    result_descriptors(const result_descriptors&) = delete;
    result_descriptors& operator=(const result_descriptors&) = delete;
    ~result_descriptors();

    /// What one worker has sent. Other processes can't send in its name.
    /// @param lost  whether descriptors were lost because this process may have no more
    /// @return null: nothing
    std::shared_ptr<detail::arrived_descriptors> take(int index, pid_t pid, bool& lost);

private:
    struct received {
        std::shared_ptr<detail::arrived_descriptors> descriptors;
        bool lost = false;
    };
    bool receive();

    sys::unique_fd socket_;
    int workers_;
    // By what the sender says, and who it is.
    sys::patient_map<std::pair<int, pid_t>, received> received_;
};

}  // namespace cohort::supervisor
