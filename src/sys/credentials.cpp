// SPDX-License-Identifier: BSL-1.0
#include "sys/credentials.hpp"

#include <algorithm>

#include <unistd.h>

namespace cohort::sys {
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

credentials credentials::now() {
    credentials self;
    ::getresuid(&self.users[0], &self.users[1], &self.users[2]);
    ::getresgid(&self.groups[0], &self.groups[1], &self.groups[2]);
    self.supplementary = supplementary_groups();
    return self;
}

bool credentials::uniform() const noexcept {
    const auto first = [](auto& ids) {
        return std::ranges::all_of(ids, [&](auto id) { return id == ids[0]; });
    };
    return first(users) && first(groups);
}

}  // namespace cohort::sys
