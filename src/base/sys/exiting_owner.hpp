// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <memory>

namespace cohort::base {

/// One more owner of an open file: a thread that has a descriptor table of its own and ends when
/// this object is destroyed. While this object lives, a close(2) of the file is not the last one.
/// The last one then comes in the end of that thread. There no socket lingers for its peer, neither
/// the file itself nor one that is on its way inside it, which nobody can reach to ask it not to.
class exiting_owner {
public:
    /// Owns nothing if the descriptor is none, or if such a thread can't be made here.
    explicit exiting_owner(int descriptor) noexcept;
    exiting_owner(const exiting_owner&) = delete;
    exiting_owner& operator=(const exiting_owner&) = delete;
    ~exiting_owner();
    /// Whether it owns the file.
    explicit operator bool() const noexcept;

private:
    struct shared;
    std::shared_ptr<shared> shared_;  // null: there is no thread
};

}  // namespace cohort::base
