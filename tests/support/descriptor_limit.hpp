// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <doctest/doctest.h>

#include <sys/resource.h>

namespace cohort::test {

/// The limits of this process.
inline rlimit limits_of_descriptors() {
    rlimit limits{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &limits) == 0);
    return limits;
}

/// Lets this process have other numbers of descriptors for the length of a scope: those below
/// `limit`.
class descriptor_limit {
public:
    explicit descriptor_limit(rlim_t limit) : limit_(limit) {
        const rlimit changed{limit, before_.rlim_max};
        REQUIRE(::setrlimit(RLIMIT_NOFILE, &changed) == 0);
    }
    /// As many as a process without privileges can have.
    static descriptor_limit highest() { return descriptor_limit(limits_of_descriptors().rlim_max); }
    descriptor_limit(const descriptor_limit&) = delete;
    descriptor_limit& operator=(const descriptor_limit&) = delete;
    ~descriptor_limit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

    rlim_t limit() const noexcept { return limit_; }

private:
    const rlimit before_ = limits_of_descriptors();
    const rlim_t limit_;
};

}  // namespace cohort::test
