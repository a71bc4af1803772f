// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <string_view>

namespace cohort::base {

/// Walks over the characters of a JSON text that are outside of strings. The text may be cut off,
/// or not JSON at all.
class outline {
public:
    explicit outline(std::string_view text) noexcept : text_(text) {}

    /// Goes to the next character outside of a string. @return false: there is none
    bool next() noexcept {
        bool in_string = false;
        while (++at_ < text_.size()) {
            const char c = text_[at_];
            if (c == '"')
                in_string = !in_string;
            else if (!in_string)
                return true;
            else if (c == '\\')
                ++at_;
        }
        return false;
    }
    std::size_t place() const noexcept { return at_; }
    char character() const noexcept { return text_[at_]; }

private:
    std::string_view text_;
    std::size_t at_ = static_cast<std::size_t>(-1);  // before the first
};

}  // namespace cohort::base
