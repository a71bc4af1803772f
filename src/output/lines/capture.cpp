// SPDX-License-Identifier: BSL-1.0
#include "output/lines/capture.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace cohort::output {

void capture_buffer::add(std::string_view bytes) {
    total_ += bytes.size();
    const std::size_t first = std::min(bytes.size(), head_limit_ - head_.size());
    head_.append(bytes.substr(0, first));
    add_to_ring(bytes.substr(first));
}

void capture_buffer::add_to_ring(std::string_view bytes) {
    if (bytes.size() >= tail_limit_) {
        ring_.assign(bytes.substr(bytes.size() - tail_limit_));
        oldest_ = 0;
        return;
    }
    const std::size_t grown = std::min(bytes.size(), tail_limit_ - ring_.size());
    ring_.append(bytes.substr(0, grown));
    bytes.remove_prefix(grown);
    const std::size_t to_the_end = std::min(bytes.size(), ring_.size() - oldest_);
    bytes.copy(ring_.data() + oldest_, to_the_end);
    oldest_ += to_the_end;
    if (oldest_ == tail_limit_)
        oldest_ = bytes.substr(to_the_end).copy(ring_.data(), tail_limit_);
}

std::string capture_buffer::tail() const {
    std::string text;
    text.reserve(ring_.size());
    text.append(ring_, oldest_).append(ring_, 0, oldest_);
    return text;
}

std::string capture_buffer::take_tail() noexcept {
    std::ranges::rotate(ring_, ring_.begin() + static_cast<std::ptrdiff_t>(oldest_));
    return std::move(ring_);
}

}  // namespace cohort::output
