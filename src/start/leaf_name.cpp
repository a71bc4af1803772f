// SPDX-License-Identifier: BSL-1.0
#include "start/leaves.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <sstream>

#include <sys/stat.h>
#include <unistd.h>

namespace cohort::start {
namespace {

ino_t own_pid_namespace() {
    struct stat found {};
    return ::stat("/proc/self/ns/pid", &found) == 0 ? found.st_ino : 0;
}

/// 0: it can't be told.
unsigned long long start_time(pid_t pid) {
    std::ifstream in(fmt::format("/proc/{}/stat", pid));
    const std::string line{std::istreambuf_iterator<char>(in), {}};
    const auto name_end = line.rfind(')');  // the name may hold blanks and brackets
    if (name_end == line.npos)
        return 0;
    std::istringstream fields(line.substr(name_end + 1));
    std::string skipped;
    for (int field = 3; field < 22; ++field)
        fields >> skipped;
    unsigned long long started = 0;
    fields >> started;
    return started;
}

}  // namespace

leaf_name leaf_name::next(workers fate) {
    // Read anew only where it may be another's: in a forked copy. Without a lock, which a copy may
    // find taken.
    static std::atomic<pid_t> known_owner = 0;
    static std::atomic<unsigned long long> known_start = 0;
    static std::atomic<ino_t> known_namespace = 0;
    static std::atomic<unsigned> last = 0;
    if (known_owner != ::getpid()) {
        known_start = start_time(::getpid());
        known_namespace = own_pid_namespace();
        known_owner = ::getpid();
    }
    return {known_namespace, ::getpid(), known_start, ++last, fate};
}

std::string leaf_name::text() const {
    return fmt::format("cohort-{}-{}-{}-{}{}", pid_namespace, owner, started, number,
                       fate == workers::may_outlive ? "-free" : "");
}

std::optional<leaf_name> leaf_name::parse(const std::string& text) {
    leaf_name name;
    unsigned long long inode = 0;
    // Whoever writes it otherwise has not made it: the text of what was read must be the same.
    if (std::sscanf(text.c_str(), "cohort-%llu-%d-%llu-%u", &inode, &name.owner, &name.started,
                    &name.number) != 4)
        return std::nullopt;
    name.pid_namespace = static_cast<ino_t>(inode);
    if (text.ends_with("-free"))
        name.fate = workers::may_outlive;
    return name.text() == text ? std::optional(name) : std::nullopt;
}

bool leaf_name::owner_is_gone() const {
    if (pid_namespace == 0 || pid_namespace != own_pid_namespace() || owner <= 0 || started == 0)
        return false;
    if (::kill(owner, 0) != 0 && errno == ESRCH)
        return true;
    // EPERM is a process as well, and /proc may hide it.
    const auto found = start_time(owner);
    return found != 0 && found != started;
}

}  // namespace cohort::start
