// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <atomic>
#include <thread>

#include <csignal>
#include <sys/wait.h>

// Hosts that reap the library's workers, and so steal their exit statuses.
namespace cohort::test {

/// Reaps every child of this process, again and again.
class hostile_waiter {
public:
    hostile_waiter()
        : thread_([this] {
              while (!done_) {
                  if (::waitpid(-1, nullptr, WNOHANG) > 0)
                      ++stolen_;
                  else
                      std::this_thread::yield();
              }
          }) {}
    ~hostile_waiter() {
        done_ = true;
        thread_.join();
    }
    int stolen() const { return stolen_; }

private:
    std::atomic<bool> done_{false};
    std::atomic<int> stolen_{0};
    std::thread thread_;
};

/// Sets the action for SIGCHLD during its lifetime.
class sigchld_action {
public:
    sigchld_action(void (*handler)(int), int flags) {
        struct sigaction action {};
        action.sa_handler = handler;
        action.sa_flags = flags;
        ::sigaction(SIGCHLD, &action, &before_);
    }
    ~sigchld_action() { ::sigaction(SIGCHLD, &before_, nullptr); }

private:
    struct sigaction before_ {};
};

}  // namespace cohort::test
