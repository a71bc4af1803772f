// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace cohort::output {

/// Keeps the first bytes of a stream, and of those after them the last. Its memory grows with what
/// is added.
class capture_buffer {
public:
    capture_buffer(std::size_t head, std::size_t tail) : head_limit_(head), tail_limit_(tail) {}

    void add(std::string_view bytes);

    /// How many bytes were added.
    std::uint64_t total() const noexcept { return total_; }
    std::string_view head() const noexcept { return head_; }
    /// The last bytes after the head, in their order.
    std::string tail() const;
    /// Hand them out, once, without a copy.
    std::string take_head() noexcept { return std::move(head_); }
    std::string take_tail() noexcept;

private:
    void add_to_ring(std::string_view bytes);

    std::size_t head_limit_;
    std::size_t tail_limit_;
    std::uint64_t total_ = 0;
    std::string head_;
    std::string ring_;        // grows to the limit, and is a ring from then on
    std::size_t oldest_ = 0;  // where the ring begins
};

}  // namespace cohort::output
