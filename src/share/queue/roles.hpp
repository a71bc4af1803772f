// SPDX-License-Identifier: BSL-1.0
#pragma once

namespace cohort::share {

/// Which ends of a queue a process uses. Until the queue is shared with another process it may use
/// both. Then its first call decides, and the other end is given up, because a reader that held a
/// writing end itself would never see the end of the stream.
class roles {
public:
    enum class answer {
        allowed,
        gives_up_other,  // allowed, and from now on the other end is not needed
        refused,         // this end was given up
    };

    answer read() noexcept { return use(role::reader); }
    answer write() noexcept { return use(role::writer); }
    /// Whether the process still has this end. Changes nothing.
    bool may_read() const noexcept { return role_ != role::writer; }
    bool may_write() const noexcept { return role_ != role::reader; }

    /// The queue is passed to another process.
    void share() noexcept { shared_ = true; }
    /// @return false: too late, an end was given up
    bool keep_both() noexcept {
        if (role_ != role::undecided)
            return role_ == role::both;
        role_ = role::both;
        return true;
    }

private:
    enum class role { undecided, reader, writer, both };

    answer use(role wanted) noexcept {
        if (role_ == role::undecided) {
            if (!shared_)
                return answer::allowed;
            role_ = wanted;
            return answer::gives_up_other;
        }
        return role_ == wanted || role_ == role::both ? answer::allowed : answer::refused;
    }

    role role_ = role::undecided;
    bool shared_ = false;
};

}  // namespace cohort::share
