// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "sys/unique_fd.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <system_error>

namespace cohort::start {

class server_process;

/// One start's waiting for the fork server, as another thread may end it.
class server_wait {
public:
    /// Makes what it waits by. For the waiting thread, before all else.
    std::error_code open();
    /// It waits no more for a server to be ready; what it has asked for it takes. Any thread.
    void hold() noexcept;
    /// SIGKILL to the server that it waits for, from now on at once. Any thread.
    void give_up() noexcept;

    bool is_held() const noexcept { return held_; }
    /// Readable after ring() or hold().
    int bell() const noexcept { return bell_.get(); }
    void ring() noexcept;
    void silence() noexcept;

    /// While it lives, the server is the one that give_up() ends.
    class for_server {
    public:
        for_server(server_wait& wait, std::shared_ptr<server_process> server);
        for_server(const for_server&) = delete;
        for_server& operator=(const for_server&) = delete;
        ~for_server();

    private:
        server_wait& wait_;
    };

private:
    sys::unique_fd bell_;
    std::atomic<bool> held_ = false;
    std::mutex mutex_;  // of what follows, and of the bell's making
    bool given_up_ = false;
    std::shared_ptr<server_process> server_;
};

}  // namespace cohort::start
