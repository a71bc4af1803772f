// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "hosts/link/frame.hpp"

#include <cstddef>
#include <span>
#include <string>

namespace cohort::multihost {

/// Looks for the greeting of the other end. Banners and profiles may print before it: that is
/// noise, which is kept for the text of an error. It takes time in proportion to the bytes, however
/// they are cut.
class greeting_search {
public:
    enum class state {
        looking,
        found,
        too_much_noise,
        echo,  // it was the greeting of this end
    };
    static constexpr std::size_t most_noise = std::size_t{64} << 10;

    /// @param from  the end whose greeting is wanted
    explicit greeting_search(side from) noexcept : from_(from), resembles_(from) {}

    /// @return how many bytes it took: all of them while it looks
    std::size_t feed(std::span<const std::byte> bytes);

    state current() const noexcept { return state_; }
    /// What stood before the greeting, at most most_noise bytes.
    const std::string& noise() const noexcept { return noise_; }

private:
    void take(std::byte next);
    void add_noise(std::span<const std::byte> bytes);

    side from_;
    side resembles_;           // whose greeting may have begun
    std::size_t matched_ = 0;  // so many bytes of it
    state state_ = state::looking;
    std::string noise_;
};

}  // namespace cohort::multihost
