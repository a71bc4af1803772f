// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"
#include "start/exec/exec.hpp"
#include "start/forkserver/forkserver_wait.hpp"
#include "start/forkserver/request.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include <unistd.h>

namespace cohort::start {

/// Why there is no server.
struct server_failure {
    std::error_code code;
    std::string text;
};

/// The application's side of one fork server, which runs or has run.
///
/// Several starts may wait for it at once, each in its own thread. The start that is awake receives
/// the server's messages and wakes the others. No lock is held during a wait. Except for kill(),
/// all calls are for starter threads, and block while the server does.
class forkserver_client {
public:
    /// @param longest_stop  a server that is stopped for so long is killed
    forkserver_client(base::unique_fd connection, base::unique_fd pidfd,
                      std::chrono::milliseconds longest_stop) noexcept;
    forkserver_client(const forkserver_client&) = delete;
    forkserver_client& operator=(const forkserver_client&) = delete;
    /// Kills the server, because another process may hold its connection open.
    ~forkserver_client();

    /// Sends the server its setup. Call this first.
    std::error_code introduce();
    /// Waits until the server is ready. It runs the preloads before that.
    std::optional<server_failure> await_ready(forkserver_wait& wait);

    /// Asks for a worker.
    /// @param order        says where the worker's order is in the file `order_file`
    /// @param descriptors  those in the slots of the worker's order
    /// @param number       set to the number of the request
    /// @return EPIPE: there is no server any more
    std::error_code ask(int order_file, fork_request order, std::span<const int> descriptors,
                        std::uint64_t& number, forkserver_wait& wait);
    /// How many requests may wait for their answers at once.
    static constexpr int most_under_way = 8;
    /// Waits for the worker of a request, or for the reason why there is none. The worker exists,
    /// but has only begun its own start. Empty: the server died without making it; ask another one.
    std::optional<start::exec_result> take(std::uint64_t number, forkserver_wait& wait);

    /// Whether the server lives and takes requests.
    bool is_usable();
    /// SIGKILL. Any thread.
    void kill() const noexcept;

private:
    enum class state { introduced, reached, ready, failed, dead };
    enum class until { done, done_or_held };

    bool is_alive() const noexcept;
    void kill_stopped(bool& was_stopped);
    bool await(forkserver_wait& wait, until end, const std::function<bool()>& done);
    bool hear();
    void hear_all(const forkserver_wait& own);
    void ring_others(const forkserver_wait& own);
    void note(const server_answer& answer, std::vector<base::unique_fd> descriptors);
    void note_worker(const server_answer& answer, std::vector<base::unique_fd> descriptors);
    void note_death();

    const pid_t owner_ = ::getpid();  // a forked copy of the process must not kill the server
    const base::unique_fd connection_;
    const base::unique_fd pidfd_;
    const std::chrono::milliseconds longest_stop_;
    std::mutex mutex_;  // protects all that follows
    state state_ = state::introduced;
    server_failure failure_;
    shared_progress* progress_ = nullptr;
    pid_t last_reported_ = 0;
    std::uint32_t reported_ = 0;  // the number of children that the server has reported
    std::uint64_t last_number_ = 0;
    // An answer that is lost for want of memory would be waited for without end.
    std::deque<std::uint64_t> asked_;  // not answered yet, in order
    std::map<std::uint64_t, start::exec_result> answered_;
    std::set<forkserver_wait*> waiting_;
};

}  // namespace cohort::start
