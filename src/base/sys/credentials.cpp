// SPDX-License-Identifier: BSL-1.0
#include "base/sys/credentials.hpp"

#include <algorithm>
#include <csignal>
#include <cstddef>

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cohort::base {
namespace {

std::vector<gid_t> supplementary_groups() {
    constexpr int few = 32;  // most users have no more, so one call is enough
    std::vector<gid_t> groups(few);
    int count = ::getgroups(few, groups.data());
    if (count < 0) {
        groups.resize(static_cast<std::size_t>(std::max(::getgroups(0, nullptr), 0)));
        count = ::getgroups(static_cast<int>(groups.size()), groups.data());
    }
    groups.resize(static_cast<std::size_t>(std::max(count, 0)));
    return groups;
}

}  // namespace

// By system calls, because the C library's functions leave its own signals out.
user_hold::user_hold() noexcept {
    constexpr int setxid_signal = 33;
    const auto blocked = std::uint64_t{1} << (setxid_signal - 1);
    ::syscall(SYS_rt_sigprocmask, SIG_BLOCK, &blocked, &before_, sizeof blocked);
}

user_hold::~user_hold() {
    ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before_, nullptr, sizeof before_);
}

user_ids user_ids::now() noexcept {
    user_ids self;
    ::getresuid(&self.real, &self.effective, &self.saved);
    return self;
}

bool may_signal(uid_t user) noexcept {
    const auto self = user_ids::now();
    if (user == self.real || user == self.effective)
        return true;
    return (capabilities::now().bits[0] & CAP_TO_MASK(CAP_KILL)) != 0;
}

credentials credentials::now() {
    credentials self;
    self.user = user_ids::now();
    ::getresgid(&self.groups[0], &self.groups[1], &self.groups[2]);
    self.supplementary = supplementary_groups();
    return self;
}

bool credentials::uniform() const noexcept {
    return user.real == user.effective && user.real == user.saved &&
           std::ranges::all_of(groups, [this](gid_t id) { return id == groups[0]; });
}

capabilities capabilities::now() noexcept {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    capabilities own;
    static_assert(sizeof own == sizeof(__user_cap_data_struct[_LINUX_CAPABILITY_U32S_3]));
    return ::syscall(SYS_capget, &header, own.bits.data()) == 0 ? own : capabilities();
}

std::uint64_t ambient_capabilities(const capabilities& own) noexcept {
    std::uint64_t found = 0;
    // Only what is permitted and inheritable can be ambient. Most threads have nothing of that.
    for (unsigned bit = 0; bit < 64; ++bit) {
        const auto half = bit / 32 * 3;
        if ((own.bits[half + 1] & own.bits[half + 2] & CAP_TO_MASK(bit)) != 0 &&
            ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, bit, 0, 0) == 1)
            found |= std::uint64_t{1} << bit;
    }
    return found;
}

capabilities capabilities::also_in(const capabilities& other) const noexcept {
    capabilities both;
    for (std::size_t half = 0; half < bits.size(); half += 3) {
        const auto permitted = other.bits[half + 1];
        both.bits[half] = bits[half] & permitted;
        both.bits[half + 1] = bits[half + 1] & permitted;
        both.bits[half + 2] = bits[half + 2] & (other.bits[half + 2] | permitted);
    }
    return both;
}

}  // namespace cohort::base
