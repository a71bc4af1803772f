// SPDX-License-Identifier: BSL-1.0
#pragma once

namespace cohort::start {

/// Exists while a child that shares this process' memory may become another user. At that moment
/// the kernel makes the memory undumpable, so that the other user's processes can't look into it by
/// way of the child, see PR_SET_DUMPABLE of prctl(2). It stays so in this process: there would be
/// no core file ever after. So the last of these objects makes the memory dumpable again, if it was
/// before the first. No child shares it then, because a start ends with the child's exec or end. A
/// copy of this process that is forked meanwhile becomes dumpable at once.
class memory_guard {
public:
    /// @param is_needed  false: the child stays the user that it is
    explicit memory_guard(bool is_needed);
    memory_guard(const memory_guard&) = delete;
    memory_guard& operator=(const memory_guard&) = delete;
    ~memory_guard();

    /// Whether the memory of this process is dumpable but for such starts.
    static bool memory_is_dumpable();

private:
    const bool is_needed_;
};

}  // namespace cohort::start
