// SPDX-License-Identifier: BSL-1.0
#include "base/sys/credentials.hpp"

#include <algorithm>

#include <linux/capability.h>
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

user_ids user_ids::now() noexcept {
    user_ids self;
    ::getresuid(&self.real, &self.effective, &self.saved);
    return self;
}

bool may_signal(uid_t user) noexcept {
    const auto self = user_ids::now();
    if (user == self.real || user == self.effective)
        return true;
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3]{};
    return ::syscall(SYS_capget, &header, data) == 0 &&
           (data[CAP_TO_INDEX(CAP_KILL)].effective & CAP_TO_MASK(CAP_KILL)) != 0;
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

}  // namespace cohort::base
