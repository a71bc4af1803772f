// SPDX-License-Identifier: BSL-1.0
#include "hosts/link/credits.hpp"

#include <algorithm>
#include <utility>

namespace cohort::multihost {

std::uint64_t sender_credit::take(std::uint64_t wanted, spend from) noexcept {
    const auto taken = std::min(wanted, left(from));
    left_ -= taken;
    return taken;
}

std::optional<breach> sender_credit::given(std::uint64_t bytes) noexcept {
    if (bytes > window_ - left_)
        return breach::overcredit;
    left_ += bytes;
    return std::nullopt;
}

std::optional<breach> receiver_credit::received(std::uint64_t bytes) noexcept {
    if (bytes > expected_)
        return breach::credit;
    expected_ -= bytes;
    return std::nullopt;
}

void receiver_credit::consumed(std::uint64_t bytes) noexcept {
    consumed_ += std::min(bytes, held());
}

std::uint64_t receiver_credit::take_due() noexcept {
    if (consumed_ < due_)
        return 0;
    expected_ += consumed_;
    return std::exchange(consumed_, 0);
}

}  // namespace cohort::multihost
