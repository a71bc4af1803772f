// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "reporter.hpp"
#include "start/cgroup/cgroup.hpp"
#include "sys_support.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>

namespace cohort::test {

inline bool exists(const std::string& path) { return std::filesystem::exists(path); }

inline base::unique_fd opened(const std::string& directory) {
    base::unique_fd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    REQUIRE(fd);
    return fd;
}

/// Removes a cgroup in which no process lives. One call may not be enough for a slow machine.
inline std::error_code remove_whole(const std::string& path, const std::string& name) {
    const auto directory = opened(path);
    std::error_code error;
    for (int call = 0; call < 100; ++call) {
        error = start::remove_cgroup(directory.get(), name);
        if (error != std::errc::device_or_resource_busy)
            break;
    }
    return error;
}

/// A cgroup for one case, removed with all that is in it.
class scratch_cgroup {
public:
    scratch_cgroup() {
        std::string why_not;
        const auto own = start::own_cgroup(why_not);
        path_ = own + "/" + name();
        if (own.empty() || ::mkdir(path_.c_str(), 0755) != 0) {
            cohort::test::skip("no cgroup to be had: " + why_not);
            path_.clear();
        }
    }
    scratch_cgroup(const scratch_cgroup&) = delete;
    scratch_cgroup& operator=(const scratch_cgroup&) = delete;
    ~scratch_cgroup() {
        if (!path_.empty())
            CHECK(remove_whole(path_, name()) == std::error_code());
    }
    explicit operator bool() const noexcept { return !path_.empty(); }
    const std::string& path() const noexcept { return path_; }
    std::vector<std::string> cgroups() const { return start::cgroups_in(opened(path_).get()); }
    std::string make(const std::string& name) const {
        const auto made = path_ + "/" + name;
        REQUIRE(::mkdir(made.c_str(), 0755) == 0);
        return made;
    }

private:
    static std::string name() { return "cohort-unit-" + std::to_string(maker_); }
    static inline const pid_t maker_ = ::getpid();
    std::string path_;
};

/// A child process that has moved into a cgroup, and stays there.
class inhabitant {
public:
    explicit inhabitant(const std::string& cgroup) {
        const auto moved = make_pipe();
        pid_ = fork_child([&] {
            std::ofstream(cgroup + "/cgroup.procs") << "0" << std::flush;
            (void)!::write(moved.writer.get(), "", 1);
            for (;;)
                ::pause();
            return 0;
        });
        std::error_code error;
        pidfd_ = base::open_pidfd(pid_, error);
        REQUIRE_FALSE(error);
        REQUIRE(await_event(moved.reader.get()));
    }
    inhabitant(const inhabitant&) = delete;
    inhabitant& operator=(const inhabitant&) = delete;
    ~inhabitant() {
        (void)!!base::send_signal(pidfd_.get(), SIGKILL);
        await_exit(pidfd_.get());
    }
    bool is_killed() const { return await_event(pidfd_.get()); }
    bool lives() const { return base::state_of_child(pidfd_.get()) == base::child_state::alive; }

private:
    pid_t pid_ = 0;
    base::unique_fd pidfd_;
};

}  // namespace cohort::test
