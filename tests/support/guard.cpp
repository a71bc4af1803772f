// SPDX-License-Identifier: BSL-1.0
#include "guard.hpp"

#include "procfs.hpp"
#include "sanitizers.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cohort::test {

namespace {

constexpr const char* mark_name = "COHORT_TEST_MARK";
constexpr auto patience_at_end = std::chrono::seconds(20);
/// How the driver of CUDA devices names shared memory of its own, some of which stays if a process
/// is killed.
constexpr const char* device_driver_files = "cuda.shm.";

void (*warm_up_call)() = nullptr;

/// Sockets that the library has made before the first case. It closes some of them on other
/// threads, at any time.
std::set<std::string>& early_sockets() {
    static std::set<std::string> those;
    return those;
}

/// Waits until no record is open, because the library closes those of a group after the group's end
/// was told.
void await_closed_records() {
    const auto until = std::chrono::steady_clock::now() + patience_at_end;
    const auto is_open = [&] {
        return std::ranges::any_of(open_descriptors(), [](const auto& open) {
            return open.second.find("memfd:cohort-record") != std::string::npos;
        });
    };
    while (is_open() && std::chrono::steady_clock::now() < until)
        ::poll(nullptr, 0, 1);  // a close has no event
}

/// Whether a thread of the library or of the C library may have such a file open for a moment, at
/// any time: a file in which names of a stack are looked up, which is this program or a shared
/// library, and shared memory whose name may be unused.
bool is_momentary(const std::string& target) {
    std::error_code error;
    static const auto program = std::filesystem::read_symlink("/proc/self/exe", error).string();
    return target.find(".so") != std::string::npos || target == program ||
           target == "/dev/shm" || target.rfind("/dev/shm/cohort", 0) == 0;
}

/// The open descriptors, without those of the driver of CUDA devices, which opens and closes them
/// as it likes.
std::map<int, std::string> own_descriptors() {
    auto found = open_descriptors();
    std::erase_if(found, [](const auto& one) { return one.second.rfind("/dev/nvidia", 0) == 0; });
    return found;
}

using descriptor = std::pair<int, std::string>;

/// Whether a loop of the library has closed one of `closed` and made `fresh` for it, which a loop
/// does whose thread was held up by a call. Takes that one from `closed`.
bool was_remade(const descriptor& fresh, std::vector<descriptor>& closed) {
    const auto& target = fresh.second;
    if (target != "anon_inode:[eventfd]" && target != "anon_inode:[eventpoll]" &&
        target != "anon_inode:[io_uring]")
        return false;
    const auto old = std::ranges::find(closed, target, &descriptor::second);
    if (old == closed.end())
        return false;
    closed.erase(old);
    return true;
}

/// The open descriptors at a moment when no other thread has one open for a moment, and when the
/// groups of the case before are gone, if that was one without a guard.
std::map<int, std::string> descriptors_at_rest() {
    const auto now = std::chrono::steady_clock::now;
    const auto until = now() + patience_at_end;
    const auto until_groups_are_gone = now() + std::chrono::seconds(2);  // some may live on purpose
    std::error_code error;
    static bool stays = false;  // one that this program was started with
    const auto directory = std::filesystem::current_path(error).string();  // a start holds it
    for (;;) {
        auto found = own_descriptors();
        const bool may_go = now() < until_groups_are_gone;
        const auto is_restless = [&](const auto& one) {
            return is_momentary(one.second) ||
                   (may_go && (one.second.find("memfd:cohort-record") != std::string::npos ||
                               (one.second == directory && !stays)));
        };
        if (std::ranges::none_of(found, is_restless))
            return found;
        if (!may_go)
            stays = std::ranges::any_of(
                found, [&](const auto& one) { return one.second == directory; });
        if (now() >= until)
            return found;
        ::poll(nullptr, 0, 1);  // a close has no event
    }
}

void warm_up_once() {
    static const bool done = [] {
        if (warm_up_call == nullptr)
            return true;
        const auto before = open_descriptors();
        warm_up_call();
        warm_up_call();
        await_closed_records();
        for (const auto& [fd, target] : open_descriptors())
            if (target.starts_with("socket:") && !before.contains(fd))
                early_sockets().insert(target);
        return true;
    }();
    (void)done;
}

std::string new_mark() {
    static std::atomic<int> counter{0};
    return std::to_string(::getpid()) + "-" + std::to_string(++counter);
}

/// Whether a new file counts as left over. In /tmp only names that this library or torch would give
/// count, because other programs use /tmp too. Test programs have a temporary directory of their
/// own (TMPDIR), where every name counts.
bool counts(const std::string& directory, const std::string& name) {
    if (name.rfind("cohort-test-", 0) == 0 && directory == "/tmp")
        return false;
    if (is_tsan_file(name) || name.rfind(device_driver_files, 0) == 0)
        return false;
    if (directory != "/tmp")
        return true;
    return name.find("cohort") != std::string::npos || name.find("torch") != std::string::npos ||
           name.find("pymp") != std::string::npos;
}

/// The process that has made this name of shared memory, "cohort.USER.SESSION.PROCESS.NUMBER"; 0
/// for another name.
pid_t maker_of(const std::string& name) {
    int maker = 0;
    return std::sscanf(name.c_str(), "cohort.%*u.%*x.%d.", &maker) == 1 ? maker : 0;
}

std::map<std::string, std::set<std::string>> watched_files() {
    std::map<std::string, std::set<std::string>> files;
    for (const std::string directory : {"/tmp", "/dev/shm"})
        files.emplace(directory, names_in(directory));
    if (const char* own = std::getenv("TMPDIR"); own != nullptr)
        files.emplace(own, names_in(own));
    return files;
}

/// How many shared arrays this process has mapped.
std::size_t mapped_arrays() {
    std::ifstream maps("/proc/self/maps");
    std::size_t count = 0;
    for (std::string line; std::getline(maps, line);)
        count += line.find("memfd:cohort-array") != std::string::npos ||
                 (line.find(" /dev/shm/") != std::string::npos &&
                  line.find(device_driver_files) == std::string::npos);
    return count;
}

/// A child that has ended and is not reaped; 0 when there is none. Does not reap it.
pid_t unreaped_child() {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0)
        return 0;
    return info.si_pid;
}

/// Returns when one of the processes has ended, or after `longest`, because other changes (a reap,
/// a close) have no event and must be looked for again.
void wait_for_change(const std::vector<pid_t>& alive, std::chrono::milliseconds longest) {
    std::vector<pollfd> polled;
    for (const pid_t pid : alive)
        if (const long fd = ::syscall(SYS_pidfd_open, pid, 0); fd >= 0)
            polled.push_back(pollfd{static_cast<int>(fd), POLLIN, 0});
    ::poll(polled.data(), polled.size(), static_cast<int>(longest.count()));
    for (const auto& p : polled)
        ::close(p.fd);
}

}  // namespace

bool set_warm_up(void (*warm_up)()) {
    warm_up_call = warm_up;
    return true;
}

leak_guard::leak_guard() : mark_(std::string(mark_name) + "=") {
    warm_up_once();
    if (const char* previous = std::getenv(mark_name); previous != nullptr)
        previous_mark_ = previous;
    const auto value = new_mark();
    mark_ += value;
    ::setenv(mark_name, value.c_str(), 1);
    for (const auto& process : descendants_of(::getpid(), all_processes()))
        processes_.emplace(process.pid, process.started);
    files_ = watched_files();
    group_cgroups_ = leaves_of(::getpid());
    mapped_arrays_ = mapped_arrays();
    descriptors_ = descriptors_at_rest();
}

leak_guard::~leak_guard() {
    if (!dismissed_)
        if (const auto left = leftovers(patience_at_end); !left.empty())
            ADD_FAIL_CHECK_AT(__FILE__, __LINE__, "left over by this case:\n" << left);
    if (previous_mark_.empty())
        ::unsetenv(mark_name);
    else
        ::setenv(mark_name, previous_mark_.c_str(), 1);
}

std::string leak_guard::leftovers(std::chrono::milliseconds patience) {
    using clock = std::chrono::steady_clock;
    const auto until = clock::now() + patience;
    auto stayed = new_files();
    for (auto pause = std::chrono::milliseconds(1);;
         pause = std::min(2 * pause, std::chrono::milliseconds(100))) {
        std::vector<pid_t> alive;
        auto left = look(alive);
        const auto files = new_files();
        std::erase_if(stayed, [&](const auto& file) { return files.count(file) == 0; });
        for (const auto& file : stayed)
            left += "file: " + file + '\n';
        if (left.empty() || clock::now() >= until)
            return left;
        wait_for_change(alive, pause);
    }
}

std::string leak_guard::look(std::vector<pid_t>& alive) const {
    std::ostringstream left;
    const auto all = all_processes();
    std::set<process_key> found;
    const auto note = [&](const char* what, const process_info& process) {
        if (!found.emplace(process.pid, process.started).second)
            return;
        if (process.state == 'Z' && process.parent == ::getpid())
            what = "unreaped child";
        else if (process.state != 'Z')
            alive.push_back(process.pid);
        left << what << ": " << describe(process) << '\n';
    };
    for (const auto& process : descendants_of(::getpid(), all))
        if (processes_.count({process.pid, process.started}) == 0)
            note("descendant", process);
    for (const auto& [pid, process] : all)
        if (pid != ::getpid() && process.state != 'Z' && has_in_environment(pid, mark_))
            note("process of this case", process);
    if (const pid_t pid = unreaped_child(); pid != 0 && found.empty())
        left << "unreaped child: " << pid << '\n';

    const auto descriptors = own_descriptors();
    std::vector<descriptor> opened, closed;
    std::ranges::set_difference(descriptors, descriptors_, std::back_inserter(opened));
    std::ranges::set_difference(descriptors_, descriptors, std::back_inserter(closed));
    std::erase_if(opened, [&](const auto& fresh) { return was_remade(fresh, closed); });
    std::erase_if(closed, [](const auto& old) { return early_sockets().contains(old.second); });
    for (const auto& [fd, target] : opened)
        left << (descriptors_.contains(fd) ? "changed" : "open") << " descriptor: " << fd << " -> "
             << target << '\n';
    for (const auto& [fd, target] : closed)
        left << "closed descriptor: " << fd << " -> " << target << '\n';

    for (const auto& name : leaves_of(::getpid()))
        if (group_cgroups_.count(name) == 0)
            left << "cgroup: " << name << '\n';

    if (const auto mapped = mapped_arrays(); mapped != mapped_arrays_)
        left << "mappings of shared arrays: " << mapped << ", were " << mapped_arrays_ << '\n';
    return left.str();
}

/// Files that were not there before. Those of other programs that run at the same time are among
/// them: names in shared memory do not tell whose they are.
/// Whether a program that runs beside this one has made the name, and lives.
bool leak_guard::is_of_others(const std::string& name) const {
    const pid_t maker = maker_of(name);
    const auto all = all_processes();
    return maker != 0 && maker != ::getpid() && all.contains(maker) &&
           !has_in_environment(maker, mark_) &&
           std::ranges::none_of(descendants_of(::getpid(), all),
                                [&](const auto& own) { return own.pid == maker; });
}

std::set<std::string> leak_guard::new_files() const {
    std::set<std::string> found;
    for (const auto& [directory, before] : files_)
        for (const auto& name : names_in(directory))
            if (before.count(name) == 0 && counts(directory, name) && !is_of_others(name))
                found.insert(directory + '/' + name);
    return found;
}

}  // namespace cohort::test
