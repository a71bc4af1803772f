// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace cohort::test {

/// The first object in each test case that starts processes. When the case ends, all must be as
/// before: the descriptors of this process, its children (none unreaped), every process that the
/// case started (grandchildren too, by a variable that all of them inherit), the files in the
/// temporary directories, the mappings of shared arrays, and the cgroups below this process's own.
/// The guard waits for what is about to go; anything else fails the case with a listing. A file is
/// left over if it is there each time that the guard looks, because other programs make files, too.
/// Processes that lose the variable and their parent are not seen.
class leak_guard {
public:
    leak_guard();
    leak_guard(const leak_guard&) = delete;
    leak_guard& operator=(const leak_guard&) = delete;
    ~leak_guard();

    /// The leftovers, one a line; empty when all is as before. Waits up to `patience` for that.
    std::string leftovers(std::chrono::milliseconds patience);
    /// Ends the guard without a check: for the tests of the guard itself.
    void dismiss() noexcept { dismissed_ = true; }
    /// "COHORT_TEST_MARK=..." in the environment of all that the case starts.
    const std::string& mark() const noexcept { return mark_; }

private:
    using process_key = std::pair<pid_t, unsigned long long>;

    std::string look(std::vector<pid_t>& alive) const;
    bool is_of_others(const std::string& name) const;
    std::set<std::string> new_files() const;

    std::string mark_;
    std::string previous_mark_;
    std::map<int, std::string> descriptors_;
    std::set<process_key> processes_;
    std::map<std::string, std::set<std::string>> files_;
    std::set<std::string> group_cgroups_;
    std::size_t mapped_arrays_ = 0;
    bool dismissed_ = false;
};

/// Sets the function that is called once, before the first guard looks. It makes what the library
/// keeps for ever (threads, ring). Returns true, for use in an initialiser.
bool set_warm_up(void (*warm_up)());

}  // namespace cohort::test
