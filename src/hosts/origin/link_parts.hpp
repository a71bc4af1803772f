// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "hosts/connection/arrival.hpp"
#include "hosts/connection/connection.hpp"
#include "hosts/link/frame_reader.hpp"
#include "hosts/link/remote_part.hpp"
#include "loop/runtime/runtime.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace cohort::multihost {

/// How a link has ended, for the parts of groups on its host.
struct link_loss {
    part_event::kind how = part_event::kind::cut;
    std::optional<breach> broken = {};
    std::string why;          // "no beat for 10 s"
    time_point last_heard{};  // of its agent
};

/// Why a host is lost that this process has no memory to hear.
inline constexpr const char* no_memory_here =
    "this program has no memory for what its agent has sent";

/// Without the time. @param host_timeout  of the link
link_loss loss_of(const connection_end& how, duration host_timeout);
/// Why a host is not reached. Empty: the end of its launcher tells more.
std::optional<std::error_code> code_of(const connection_end& how);

/// What a link tells the part of a group on its host.
class part_listener {
public:
    virtual ~part_listener() = default;
    /// A message of its group. On the output thread.
    virtual void heard(message what, const arrival& when) = 0;
    /// Comes once, also after the part is over. On the engine's thread.
    virtual void link_lost(const link_loss& how) = 0;
    /// How long its agent may take to stop the workers.
    virtual duration longest_stop() const = 0;
};

/// The parts of groups on one host, by the numbers of their groups, and the link that they share.
class link_parts : public std::enable_shared_from_this<link_parts> {
public:
    link_parts(loop::runtime& runtime, std::shared_ptr<connection> link) noexcept
        : runtime_(runtime), link_(std::move(link)) {}

    // On the engine's thread:

    /// From now on the part hears of the link.
    /// @param largest  size of the largest message that its agent may send
    void open(std::uint32_t group, const std::shared_ptr<part_listener>& part, std::size_t largest);
    void close(std::uint32_t group);
    /// Tells all parts that the link is lost. @return the longest of their longest_stop()
    duration lose(const link_loss& how);

    // On any thread:

    /// Sends a message to the agent.
    void say(const frame_name& name, std::vector<std::byte> body = {});
    /// The agent broke the protocol.
    void refuse(breach how);

    // On the output thread:

    connection& link() noexcept { return *link_; }
    /// A message of a group. Of one that is over, or never was, nothing is heard.
    void hear(message what);

private:
    using parts = std::map<std::uint32_t, std::weak_ptr<part_listener>>;

    loop::runtime& runtime_;
    const std::shared_ptr<connection> link_;
    parts parts_;  // the engine's thread's
    parts heard_;  // the same, the output thread's
};

}  // namespace cohort::multihost
