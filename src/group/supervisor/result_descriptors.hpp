// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/patient_containers.hpp"
#include "base/sys/unique_fd.hpp"
#include "share/queue/arrived.hpp"

#include <cohort/detail/registration.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace cohort::detail::inline v0_1 {

/// The descriptors of one result. A worker has chosen them, and any call on one may wait, even
/// fstat(2), recvmsg(2) or close(2): so the engine's thread makes none. Many of them stay packed
/// until owned(), so that no worker fills its host's descriptor table.
class arrived_descriptors {
public:
    explicit arrived_descriptors(share::arrived came) noexcept : came_(std::move(came)) {}
    arrived_descriptors(const arrived_descriptors&) = delete;
    arrived_descriptors& operator=(const arrived_descriptors&) = delete;

    /// For the thread that takes the result.
    /// @throws codec_error    their packing is none that a worker of this library makes
    /// @throws sharing_error  there is no room for them yet
    std::span<const attachment> owned();

private:
    std::mutex mutex_;
    share::arrived came_;  // until owned()
    std::vector<attachment> owned_;
};

}  // namespace cohort::detail::inline v0_1

namespace cohort::groups {

/// The descriptors that results of a group's workers hold. Each worker sends them before it notes
/// its result. Belongs to the engine's thread, and never waits.
class result_descriptors {
public:
    /// @param socket   shared by all workers of the group; tells senders, see base::tell_sender()
    /// @param workers  how many the group has
    result_descriptors(base::unique_fd socket, int workers)
        : socket_(std::move(socket)), pids_(static_cast<std::size_t>(workers), unknown) {}
    result_descriptors(const result_descriptors&) = delete;
    result_descriptors& operator=(const result_descriptors&) = delete;
    ~result_descriptors();

    /// To be called for each worker. Only its own messages count from then on, and not those of its
    /// children, because nobody would ever ask for these.
    void started(int index, pid_t pid);
    /// What one worker has sent, once. Other processes can't send in its name.
    /// @param lost  whether descriptors were lost because this process may have no more
    /// @return null: nothing
    std::shared_ptr<detail::arrived_descriptors> take(int index, pid_t pid, bool& lost);

private:
    struct received {
        std::shared_ptr<detail::arrived_descriptors> descriptors;
        bool lost = false;
    };
    static constexpr pid_t unknown = 0;
    static constexpr pid_t nobody = -1;  // what the worker has sent was taken
    bool receive();
    bool may_send(int index, pid_t sender) const noexcept;

    base::unique_fd socket_;
    std::vector<pid_t> pids_;  // who may send, by index
    // By what the sender says, and who it is.
    base::patient_map<std::pair<int, pid_t>, received> received_;
};

}  // namespace cohort::groups
