// SPDX-License-Identifier: BSL-1.0
#include "base/sys/credentials.hpp"

#include <algorithm>

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
