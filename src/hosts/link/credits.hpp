// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "hosts/link/breach.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace cohort::multihost {

/// What one end may have under way to the other, in bytes: so much unread data delays a beat by
/// less than 0.2 s.
inline constexpr std::uint64_t usual_window = std::uint64_t{1} << 20;

/// What may be spent of a window: the reserve behind it is for what must not wait.
enum class spend { window, reserve_too };

/// The sender's side: how many bytes it may still send.
class sender_credit {
public:
    explicit sender_credit(std::uint64_t window = usual_window, std::uint64_t reserve = 0) noexcept
        : window_(window + reserve), reserve_(reserve), left_(window + reserve) {}

    /// Spends credit. @return how many of the `wanted` bytes may be sent now
    std::uint64_t take(std::uint64_t wanted, spend from = spend::window) noexcept;
    /// The receiver has given more. @return a breach: more than the window then
    std::optional<breach> given(std::uint64_t bytes) noexcept;

    std::uint64_t left(spend from = spend::window) const noexcept {
        return from == spend::reserve_too ? left_ : left_ - std::min(left_, reserve_);
    }

private:
    std::uint64_t window_;  // with the reserve
    std::uint64_t reserve_;
    std::uint64_t left_;
};

/// The receiver's side: what it gives back as it consumes. The bytes of the window are always of
/// three kinds: the sender may send them, they are here, or they are consumed and not given back.
class receiver_credit {
public:
    explicit receiver_credit(std::uint64_t window = usual_window,
                             std::uint64_t reserve = 0) noexcept
        : window_(window + reserve), due_(std::max<std::uint64_t>(window / 2, 1)),
          expected_(window + reserve) {}

    /// @return a breach: the sender had no credit for so many
    std::optional<breach> received(std::uint64_t bytes) noexcept;
    /// Of the bytes that are here, so many are not any more. More than are here count as all.
    void consumed(std::uint64_t bytes) noexcept;
    /// Takes what is to be given back now: nothing until it is half of the window without the
    /// reserve, because each credit costs a frame.
    std::uint64_t take_due() noexcept;

    /// How many bytes are here.
    std::uint64_t held() const noexcept { return window_ - expected_ - consumed_; }

private:
    std::uint64_t window_;  // with the reserve
    std::uint64_t due_;
    std::uint64_t expected_;  // may still come
    std::uint64_t consumed_ = 0;
};

}  // namespace cohort::multihost
