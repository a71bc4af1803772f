// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "start/exec.hpp"
#include "start/request.hpp"
#include "sys/unique_fd.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include <sys/types.h>

namespace cohort::start {

/// One start's waiting for the server, as another thread may look at it, and end it.
class server_wait {
public:
    /// SIGKILL to the server, if it is waited for now; from here on this start waits no more.
    void give_up() noexcept;

private:
    friend class fork_server;
    std::atomic<int> pidfd_ = -1;
    std::atomic<bool> given_up_ = false;
};

/// The application's side of its fork server: a process with one thread, in which the program is
/// executed once, and that makes workers as copies of itself. They are children of the application.
///
/// Started at the first use; a server that has died, or has not the application's user or session
/// any more, is replaced at the next. It ends with the application: by its parent-death signal,
/// which is bound to the thread that started it (a starter thread, which never ends), and by the
/// connection's end. That of its workers is bound to the same thread, whichever thread asks for
/// them: the kernel gives a child by CLONE_PARENT the server's parent, and that is a thread.
class fork_server {
public:
    /// @param reap  takes over the pidfd of each server, to reap it some day. Any thread.
    explicit fork_server(std::function<void(sys::unique_fd pidfd)> reap);

    /// What the server starts with.
    struct surroundings {
        std::vector<char*> environment;  // ends with nullptr
        int directory_fd = -1;
        const cpu_set_t* affinity = nullptr;
        std::size_t affinity_size = 0;
        pid_t parent = 0;
        guard_order guard;  // for what a preload starts
    };
    struct failure {
        std::error_code code;
        std::string text;
    };
    /// A request under way. Void when its server has died.
    struct ticket {
        std::uint64_t server = 0;
        std::uint64_t number = 0;
        friend auto operator<=>(const ticket&, const ticket&) = default;
    };

    // All of them are for starter threads, and block while the server does.

    /// Sees to it that a server runs. Preloads run in it before this returns.
    /// @param pidfd_slot  see start_by_exec
    std::optional<failure> ensure(const surroundings& where, std::atomic<int>& pidfd_slot,
                                  server_wait& wait);
    /// Asks for a worker. @param order  in the file `book`, at an offset; descriptors: as packed
    /// @return EPIPE: there is no server any more
    std::error_code ask(int book, fork_request order, std::span<const int> descriptors,
                        ticket& asked, server_wait& wait);
    /// How many requests may be asked ahead of the answers.
    static constexpr int most_under_way = 8;
    /// The worker of a request, whose own start has only begun; or why there is none. Empty: the
    /// server has died and not made it; ask again.
    std::optional<exec_result> take(const ticket& asked, server_wait& wait);

private:
    class exposed;

    /// What its workers have from it, and must have in common with the application.
    struct identity {
        uid_t users[3] = {};
        gid_t groups[3] = {};
        pid_t session = 0;

        static identity now() noexcept;
        bool operator==(const identity&) const = default;
    };

    std::optional<failure> start(const surroundings& where, std::atomic<int>& pidfd_slot,
                                 server_wait& wait);
    std::optional<failure> introduce(server_wait& wait);
    std::optional<server_answer> receive(std::vector<sys::unique_fd>& descriptors);
    bool hear(server_wait& wait);
    void note_answer(const server_answer& answer, std::vector<sys::unique_fd> descriptors);
    void note_death();
    bool alive() noexcept;

    const std::function<void(sys::unique_fd)> reap_;
    std::mutex mutex_;  // of all that follows; held while waiting for the server
    std::uint64_t generation_ = 0;
    std::uint64_t last_number_ = 0;
    sys::unique_fd connection_;  // empty: no server
    sys::unique_fd pidfd_;
    sys::unique_fd previous_pidfd_;  // open until nobody can have its number in mind
    identity started_as_;
    server_ledger* ledger_ = nullptr;
    pid_t last_told_ = 0;
    std::deque<ticket> asked_;  // not answered yet, in order
    std::map<ticket, exec_result> answered_;
    std::set<ticket> unwanted_;  // asked, but nobody will take them
};

}  // namespace cohort::start
