// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <vector>

#include <unistd.h>

namespace cohort::test {

/// The real, effective and saved user of this process, the same of its group, and its other groups.
inline std::vector<unsigned> process_ids() {
    std::vector<unsigned> found(6);
    ::getresuid(&found[0], &found[1], &found[2]);
    ::getresgid(&found[3], &found[4], &found[5]);
    std::vector<gid_t> groups(100);
    groups.resize(static_cast<std::size_t>(::getgroups(100, groups.data())));
    found.insert(found.end(), groups.begin(), groups.end());
    return found;
}

}  // namespace cohort::test
