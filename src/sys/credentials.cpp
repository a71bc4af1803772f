// SPDX-License-Identifier: BSL-1.0
#include "sys/credentials.hpp"

#include <algorithm>

#include <unistd.h>

namespace cohort::sys {

credentials credentials::now() {
    credentials self;
    ::getresuid(&self.users[0], &self.users[1], &self.users[2]);
    ::getresgid(&self.groups[0], &self.groups[1], &self.groups[2]);
    const int count = ::getgroups(0, nullptr);
    self.supplementary.resize(static_cast<std::size_t>(std::max(count, 0)));
    const int read =
        ::getgroups(static_cast<int>(self.supplementary.size()), self.supplementary.data());
    self.supplementary.resize(static_cast<std::size_t>(std::max(read, 0)));
    return self;
}

bool credentials::uniform() const noexcept {
    const auto first = [](auto& ids) {
        return std::ranges::all_of(ids, [&](auto id) { return id == ids[0]; });
    };
    return first(users) && first(groups);
}

}  // namespace cohort::sys
