// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/memfd.hpp"
#include "start/exec/exec.hpp"
#include "sys_support.hpp"
#include "wanted_order.hpp"

#include <csignal>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <sys/stat.h>

namespace cohort::test {

struct named_tier {
    std::string_view name;
    start::start_tier tier;
};
inline constexpr named_tier all_tiers[] = {
    {"clone3, close_range", {true, true}},
    {"legacy clone, close_range", {false, true}},
    {"clone3, walk", {true, false}},
    {"legacy clone, walk", {false, false}},
};

/// Runs `body` on a thread with all signals blocked, as starters have them.
template <class Body>
void on_starter(Body body) {
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread starter(body);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    starter.join();
}

/// A file in memory that holds `text`.
inline base::unique_fd file_with(std::string_view text) {
    std::error_code error;
    base::unique_fd file = base::make_memfd("test", error);
    REQUIRE_FALSE(error);
    REQUIRE_FALSE(base::write_at(file.get(), std::as_bytes(std::span(text)), 0));
    return file;
}

/// Like file_with(), but at descriptor `number`.
inline base::unique_fd file_at(int number, std::string_view text) {
    REQUIRE(::dup3(file_with(text).get(), number, O_CLOEXEC) == number);
    return base::unique_fd(number);
}

inline std::string text_of(int fd) {
    struct stat file;
    REQUIRE(::fstat(fd, &file) == 0);
    std::string text(static_cast<std::size_t>(file.st_size), '\0');
    REQUIRE(::pread(fd, text.data(), text.size(), 0) == file.st_size);
    return text;
}

/// Kills the child whose pidfd is in the slot if this object lives too long, so that a start that
/// hangs fails its own test and does not block the others.
class hang_killer {
public:
    explicit hang_killer(const std::atomic<int>& slot)
        : thread_([this, &slot] {
              if (await_event(over_.reader.get(), 0))
                  return;
              MESSAGE("a start hung and was killed");
              (void)base::send_signal(slot.load(), SIGKILL);
          }) {}
    ~hang_killer() {
        over_.writer.reset();  // the other end sees POLLHUP
        thread_.join();
    }

private:
    pipe_ends over_ = make_pipe();
    std::thread thread_;
};

/// One start, with the child's stdout and exit status.
struct launch {
    explicit launch(std::vector<std::string> words) : argv(std::move(words)) {
        order.parent = ::getpid();
    }
    /// A shell that runs `script`.
    static launch shell(const char* script) { return launch({"/bin/sh", "-c", script}); }

    /// Starts the child on a new thread, waits there for its end and reaps it.
    const start::exec_result& run(start::start_tier tier) {
        base::unique_fd stdout_file = file_with("");
        wanted_order prepared = prepare(stdout_file.get());
        on_starter([&] {
            const hang_killer killer(slot);
            if (before_start)
                before_start();
            result = start_by_exec(prepared, slot, tier);
            if (result.first_child)
                (void)await_exit(result.first_child.get());
            if (!result.pidfd)
                return;
            group = ::getpgid(result.pid);
            pidfd_number = result.pidfd.get();
            executed = result.failed == start::stage::none && start::has_executed(pidfd_number);
            status = await_exit(result.pidfd.get());
        });
        output = text_of(stdout_file.get());
        result.pidfd.reset();
        result.first_child.reset();
        return result;
    }

    std::vector<std::string> argv;
    std::vector<std::string> env;
    wanted_order order;                  // argv, envp and stdout are added to it
    std::function<void()> before_start;  // called by the starter's thread

    start::exec_result result;
    std::atomic<int> slot{-1};
    int pidfd_number = -1;
    bool executed = false;
    pid_t group = 0;
    exit_status status;
    std::string output;

private:
    wanted_order prepare(int stdout_fd) {
        wanted_order prepared = order;
        for (std::string& word : argv)
            prepared.argv.push_back(word.data());
        prepared.argv.push_back(nullptr);
        for (std::string& entry : env)
            prepared.envp.push_back(entry.data());
        prepared.envp.push_back(nullptr);
        if (prepared.candidates.empty())
            prepared.candidates = {argv.at(0).c_str()};
        bool elsewhere = false;
        for (const wanted_descriptor& move : prepared.descriptors)
            elsewhere = elsewhere || move.target == 1;
        if (!elsewhere)
            prepared.descriptors.push_back({1, stdout_fd});
        return prepared;
    }
};

}  // namespace cohort::test
