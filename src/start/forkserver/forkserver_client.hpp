// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"
#include "base/sys/threads.hpp"
#include "start/exec/exec.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
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

#include <sys/types.h>
#include <unistd.h>

namespace cohort::start {

// The messages between the application and its fork server, over a socket that keeps messages
// whole. Both processes run the same program, so plain structs do.

/// The first message to the server. The keys of the functions to preload follow it. The descriptor
/// of the shared progress comes with it.
struct server_setup {
    start::start_tier tier;
    std::uint32_t preloads = 0;
};

/// Asks for one worker. The worker's order is in the group's order file. That file is the first of
/// the descriptors that come with the request; the others are those in the order's slots. What one
/// message can't carry is packed into the last of them (base/files/carrier.hpp).
struct fork_request {
    std::uint64_t number = 0;
    std::int32_t parent = 0;   // the application
    std::int32_t cgroup = -1;  // the slot of its cgroup's directory; -1: none
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    std::uint64_t packed = 0;  // how many descriptors are in the last one
};

enum class answer_kind : std::int32_t {
    reached,  // worker_main has taken over
    ready,    // the preloads are done; from now on each request has one answer
    failed,   // there is no server: `text` and `error` say why
    forked,   // `pid` with its pidfd
    refused,  // `error`; if `pid` is set, that child was made and then killed
};
struct server_answer {
    answer_kind kind = answer_kind::reached;
    std::uint64_t number = 0;  // of the request
    std::int32_t pid = 0;
    std::int32_t error = 0;
    char text[500] = {};
};

/// Memory that both processes share. The kernel writes the pid of the last child there before that
/// child runs, so that the application finds a child that the server made but could not report.
struct shared_progress {
    pid_t forked = 0;
    /// How many children may go on: those that were reported. The others wait. A child that dies
    /// before the application holds its pidfd has run no user code, so it can be started again.
    base::futex released = 0;
};
/// Lets the first `children` children go on. The server calls this when it has sent a report, the
/// application when it has received it, in case the server died in between.
void release(shared_progress& progress, std::uint32_t children) noexcept;

/// One start's wait for the fork server, which another thread may end.
class forkserver_wait {
public:
    /// Makes the event that it waits for. Called first, by the waiting thread.
    std::error_code open();
    /// Closes the event. Called by the waiting thread, when it waits no more.
    void close() noexcept;
    /// Ends the wait for a server to be ready; the start still takes the workers that it has asked
    /// for. Any thread.
    void hold() noexcept;
    /// From now on a server that keeps the start waiting gets SIGKILL. Any thread.
    void give_up() noexcept;
    /// From `when` on a server that keeps the start waiting gets SIGKILL. Called by the waiting
    /// thread.
    void give_up_at(std::chrono::steady_clock::time_point when) noexcept { give_up_at_ = when; }

    bool is_held() const noexcept { return held_; }
    /// How many milliseconds poll(2) may wait for the server; then SIGKILL. -1: without an end.
    int patience() const noexcept;
    /// Readable after ring(), hold() and give_up().
    int event() const noexcept { return event_.get(); }
    void ring() noexcept;
    void drain() noexcept;

private:
    std::mutex mutex_;  // protects the making and closing of the event
    base::unique_fd event_;
    std::atomic<bool> held_ = false;
    std::atomic<bool> given_up_ = false;
    std::optional<std::chrono::steady_clock::time_point> give_up_at_;
};

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
