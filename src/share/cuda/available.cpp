// SPDX-License-Identifier: BSL-1.0
#include "base/sys/leaked.hpp"
#include "share/cuda/segment.hpp"

#include <cohort/cuda.hpp>

#include <cstddef>
#include <exception>
#include <string>

namespace cohort {
namespace share::device {
namespace {

constexpr std::size_t tried_bytes = std::size_t{2} << 20;

/// Hands memory from this process to itself as to another one. Drivers exist that say they can do
/// this, and fail.
std::string try_it() {
    try {
        const auto made = segment::make(0, tried_bytes);
        segment_handle sent = made->described();
        sent.number = ~sent.number;  // else the segment would be found, and not mapped again
        (void)segment::arrived(sent);
    } catch (const std::exception& e) {
        return e.what();
    }
    return "";
}

std::string why_not() {
    const auto& why = base::leaked([] { return try_it(); });
    if (!why.empty() || session::is_usable())
        return why;
    return try_it();  // says that this is a forked copy
}

}  // namespace

}  // namespace share::device

bool cuda::available() { return share::device::why_not().empty(); }

std::string cuda::why_not() { return share::device::why_not(); }

}  // namespace cohort
