// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"
#include "hosts/agent/agent_group.hpp"
#include "hosts/connection/connection.hpp"
#include "hosts/values/messages.hpp"
#include "loop/runtime/runtime.hpp"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cohort::multihost {

/// In bytes. Environments are smaller, because exec takes no larger ones.
inline constexpr std::size_t largest_welcome = std::size_t{8} << 20;

/// What this process says of itself.
hello hello_of_this_process();

/// The agent of this host: runs the workers that the other end of its link asks for. Belongs to the
/// thread of the output loop, as its connection does.
class agent final : public connection::listener, public std::enable_shared_from_this<agent> {
public:
    /// How it has ended.
    struct ending {
        bool says_bye = false;  // when its groups have ended
        std::string why;        // else: why the link has ended
    };

    agent(loop::runtime& runtime, base::unique_fd in, base::unique_fd out);

    /// Says hello, and blocks until it is over. Its lease lasts for the origin's host_timeout, and
    /// until the origin has told that for as long as lease_rules say. Safe from any thread.
    /// @param end_signals  their numbers come out of it, see catch_end_signals()
    ending live(base::unique_fd end_signals);
    /// Says bye: all groups have ended. Blocks until that is written, or can't be.
    void say_bye();

private:
    void heard(message what) override;
    void ended(const connection_end& how) override;
    void heard_of_group(message what);
    void start(std::uint32_t group, std::vector<std::byte> plan);
    void say_bye_when_told();
    void watch_end_signals();
    void told_to_end();
    void welcomed(std::span<const std::byte> body);
    void refuse(breach how);
    void over(ending how);
    void close();

    loop::runtime& runtime_;
    std::shared_ptr<connection> link_;
    std::map<std::uint32_t, std::shared_ptr<agent_group>> groups_;  // not yet forgotten
    base::unique_fd end_signals_;
    std::mutex mutex_;  // for the next two
    // Not a future: of a thread that waits for one, ThreadSanitizer delays the signals.
    std::condition_variable is_over_;
    std::optional<ending> how_;  // empty: it is not over
    std::promise<void> closed_;
    bool is_closed_ = false;
    bool is_welcome_ = false;
    bool is_bye_due_ = false;
};

}  // namespace cohort::multihost
