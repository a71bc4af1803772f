// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/files/dispose.hpp"
#include "base/sys/descriptors.hpp"
#include "share/channel/channel.hpp"

#include <cohort/detail/registration.hpp>
#include <cohort/outcome.hpp>

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

/// The descriptors that the result of one worker holds. The worker sends them before it notes its
/// result, through a socket of its own, so that none can keep another from ending. Belongs to the
/// engine's thread, and never waits.
class result_descriptors {
public:
    /// @param socket  reports senders, see base::report_sender(); the worker has its other end
    explicit result_descriptors(base::unique_fd socket) noexcept : socket_(std::move(socket)) {}
    result_descriptors(result_descriptors&&) = default;
    result_descriptors& operator=(result_descriptors&&) = delete;
    /// The socket may hold descriptors that nobody has received.
    ~result_descriptors() { base::dispose(std::move(socket_)); }

    /// What the worker has sent, and not a child of it. To be called once.
    /// @param lost  whether descriptors were lost because this process may have no more
    /// @return null: nothing
    std::shared_ptr<detail::arrived_descriptors> take(pid_t worker, bool& lost);
    /// Adds them to the outcome, with a note if some were lost.
    void give_to(outcome& worker);

private:
    base::unique_fd socket_;
};

}  // namespace cohort::groups
