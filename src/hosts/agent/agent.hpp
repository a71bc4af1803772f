// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/patient_containers.hpp"
#include "base/sys/unique_fd.hpp"
#include "hosts/connection/connection.hpp"
#include "hosts/values/messages.hpp"
#include "loop/runtime/runtime.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <string>

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
        bool is_left = false;  // as the origin wished: it is to say bye
        std::string why;       // else: why the link has ended
    };

    agent(loop::runtime& runtime, base::unique_fd in, base::unique_fd out);

    /// Says hello. Safe from any thread.
    std::future<ending> begin();
    /// Says bye: all groups have ended. Blocks until that is written, or can't be.
    void say_bye();

private:
    void heard(message what) override;
    void ended(const connection_end& how) override;
    void welcomed(std::span<const std::byte> body);
    void refuse(breach how);
    void over(ending how);
    void close();

    loop::runtime& runtime_;
    std::shared_ptr<connection> link_;
    std::promise<ending> over_;
    std::promise<void> closed_;
    bool is_over_ = false;
    bool is_closed_ = false;
    bool is_welcome_ = false;
};

}  // namespace cohort::multihost
