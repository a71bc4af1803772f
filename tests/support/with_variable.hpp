// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace cohort::test {

/// Gives an environment variable of this process another value for the duration of a scope.
class with_variable {
public:
    /// @param value  empty: it is not set
    with_variable(const char* name, const std::optional<std::string>& value) : name_(name) {
        if (const char* const before = std::getenv(name))
            before_ = before;
        set(value);
    }
    with_variable(const with_variable&) = delete;
    with_variable& operator=(const with_variable&) = delete;
    ~with_variable() { set(before_); }

private:
    void set(const std::optional<std::string>& value) const {
        if (value)
            ::setenv(name_, value->c_str(), 1);
        else
            ::unsetenv(name_);
    }

    const char* name_;
    std::optional<std::string> before_;
};

}  // namespace cohort::test
