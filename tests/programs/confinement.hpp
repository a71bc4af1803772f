// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <semaphore>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <grp.h>
#include <linux/mount.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// Takes something from this process. Changes of mounts need a mount namespace of its own.
namespace confinement {

constexpr unsigned nobody = 65'534;

inline void require(bool works, const char* what) {
    if (!works)
        throw std::system_error(errno, std::system_category(), what);
}

/// A mount namespace of this process's own. Functions that change mounts demand it, so that they
/// can never change the mounts of all processes. Call make() before there are threads.
class own_mounts {
public:
    static void make() {
        require(::unshare(CLONE_NEWNS) == 0, "unshare");
        require(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0,
                "mount: private");
        made() = true;
    }
    static void demand() {
        errno = EPERM;
        require(made(), "no mount namespace of its own");
    }
    static bool are_changed_by(std::string_view loss) {
        return loss == "proc" || loss == "empty_proc" || loss == "tmp" || loss == "writing" ||
               loss == "init";
    }

private:
    static bool& made() {
        static bool is_made = false;
        return is_made;
    }
};

inline void lose_proc() {
    require(::umount2("/proc", MNT_DETACH) == 0, "umount of /proc");
    // Another one may have been mounted below.
    while (::access("/proc/self", F_OK) == 0)
        require(::umount2("/proc", MNT_DETACH) == 0, "umount of /proc");
}

inline void empty_proc() {
    require(::mount("none", "/proc", "tmpfs", 0, nullptr) == 0, "tmpfs on /proc");
}

/// Makes a file and fills the file system with it.
inline void fill(const std::string& path) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    require(file >= 0, "open");
    static const std::string block(4096, 'x');
    while (::write(file, block.data(), block.size()) > 0) {
    }
    require(errno == ENOSPC, "a full file system");
    ::close(file);
}

/// Programs of this build stay executable at their paths, even if the build is inside /tmp.
inline void fill_tmp() {
    auto build = std::filesystem::read_symlink("/proc/self/exe");
    for (int i = 0; i < 3; ++i)
        build = build.parent_path();
    const bool inside = build.string().rfind("/tmp/", 0) == 0;
    const int files = ::open(build.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    require(files >= 0, "open");
    require(::mount("none", "/tmp", "tmpfs", 0, "size=64k") == 0, "tmpfs on /tmp");
    if (inside) {
        std::filesystem::create_directories(build);
        const auto from = fmt::format("/proc/self/fd/{}", files);
        require(::mount(from.c_str(), build.c_str(), nullptr, MS_BIND | MS_REC, nullptr) == 0,
                "bind");
    }
    ::close(files);
    fill("/tmp/full");
    require(::setenv("TMPDIR", "/tmp", 1) == 0, "setenv");
}

inline void lose_writing() {
    mount_attr read_only{};
    read_only.attr_set = MOUNT_ATTR_RDONLY;
    constexpr unsigned recursive = 0x8000;  // AT_RECURSIVE
    require(::syscall(SYS_mount_setattr, AT_FDCWD, "/", recursive, &read_only, sizeof read_only) ==
                0,
            "mount_setattr: read-only");
    const int file = ::open("/tmp/cohort-test-none", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    require(file < 0 && errno == EROFS, "a read-only file system");
}

inline void lose_lockable_memory() {
    const rlimit none{0, 0};
    require(::setrlimit(RLIMIT_MEMLOCK, &none) == 0, "setrlimit");
}

/// Most likely a user without processes, because RLIMIT_NPROC counts all processes of a user.
inline unsigned own_user() { return 30'000 + static_cast<unsigned>(::getpid()) % 30'000; }

inline void become(unsigned user) {
    require(::setgroups(0, nullptr) == 0, "setgroups");
    require(::setresgid(user, user, user) == 0, "setresgid");
    require(::setresuid(user, user, user) == 0, "setresuid");
}

/// Continues as PID 1 of a pid namespace of its own, with a /proc of that namespace. The original
/// process waits for the new one and exits with its exit code.
inline void become_init() {
    require(::unshare(CLONE_NEWPID) == 0, "unshare of the pid namespace");
    const pid_t init = ::fork();
    require(init >= 0, "fork");
    if (init > 0) {
        int status = 0;
        ::waitpid(init, &status, 0);
        ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    require(::mount("proc", "/proc", "proc", 0, nullptr) == 0, "mount of /proc");
}

/// The thread that runs main, in a program that continues in another thread.
class main_thread {
public:
    /// Runs `rest`, which must not return, in another thread. This thread ends in lose().
    template <class Rest>
    [[noreturn]] static void leave_to(Rest rest) {
        std::thread(std::move(rest)).detach();
        may_end().acquire();
        ::pthread_exit(nullptr);
    }
    /// Ends the main thread and waits for its end.
    static void lose() {
        may_end().release();
        const auto stat = fmt::format("/proc/self/task/{}/stat", ::getpid());
        std::string number, name, state;
        while (state != "Z") {
            std::this_thread::yield();
            std::ifstream(stat) >> number >> name >> state;
        }
    }

private:
    static std::binary_semaphore& may_end() {
        static auto& allowed = *new std::binary_semaphore(0);
        return allowed;
    }
};

/// @return why it can't be lost; empty: it is lost
inline std::string lose(std::string_view what) {
    try {
        if (own_mounts::are_changed_by(what))
            own_mounts::demand();
        if (what == "proc")
            lose_proc();
        else if (what == "empty_proc")
            empty_proc();
        else if (what == "tmp")
            fill_tmp();
        else if (what == "writing")
            lose_writing();
        else if (what == "lockable_memory")
            lose_lockable_memory();
        else if (what == "user")
            become(nobody);
        else if (what == "init")
            become_init();
        else if (what == "main_thread")
            main_thread::lose();
        else if (what == "all_other_processes")
            become(own_user());
        else
            return "nothing is called " + std::string(what);
    } catch (const std::system_error& e) {
        return std::string(what) + ": " + e.what();
    }
    return {};
}

}  // namespace confinement
