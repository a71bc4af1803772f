// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/line_run.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

/// Makes runs, and uses the memory of large ones again once nobody has them any more. Without that
/// a flood of text spends half of its time on memory that goes back to the system and comes again.
/// Runs may be dropped on any thread, also after the pool.
class run_pool : public std::enable_shared_from_this<run_pool> {
public:
    /// An empty run. Only one for much text has memory that was used before: a short run would hold
    /// much of it, for a few lines that wait to be read.
    /// @param size  how many bytes of text it will hold
    std::shared_ptr<detail::line_run> make(std::size_t size);

private:
    void take_back(std::unique_ptr<detail::line_run> run) noexcept;

    // Only tried, because a forked copy may inherit it locked.
    std::mutex mutex_;
    std::vector<std::unique_ptr<detail::line_run>> free_;
};

}  // namespace cohort::output
