// SPDX-License-Identifier: BSL-1.0
// What the threads that write a target do.
#include "output/targets/target.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <string_view>
#include <thread>
#include <utility>

namespace cohort::output {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t batch_size = std::size_t{128} << 10;

std::uint64_t size_of(const detail::told_run& part) noexcept {
    std::uint64_t size = 0;
    for (std::size_t i = part.first; i < part.first + part.count; ++i)
        size += part.run->lines[i].size;
    return size;
}

}  // namespace

void target::wake_writer() noexcept {
    {
        const std::lock_guard lock(mutex_);
        if (is_over_)
            return;
        if (std::exchange(is_submitted_, true))
            return;
    }
    try {
        threads_.submit(
            [self = shared_from_this()](std::string& bytes) { return self->step(bytes); }, this);
    } catch (const std::exception&) {
        {
            const std::lock_guard lock(mutex_);
            is_submitted_ = false;
        }
        try_again_later();
    }
}

/// No thread can be started now. Those who add may all be waiting for room, so nothing else would
/// try again.
void target::try_again_later() noexcept {
    {
        const std::lock_guard lock(mutex_);
        if (std::exchange(tries_again_, true))
            return;
    }
    const auto try_again = [self = shared_from_this()] {
        {
            const std::lock_guard lock(self->mutex_);
            self->tries_again_ = false;
        }
        self->wake_writer();
    };
    try {
        loop_.post([&loop = loop_, try_again] {
            loop.timer().at(std::chrono::steady_clock::now() + 100ms, try_again);
        });
    } catch (const std::bad_alloc&) {
        const std::lock_guard lock(mutex_);
        tries_again_ = false;
    }
}

/// Writes a batch. @return false: the thread must not call it again
bool target::step(std::string& bytes) noexcept {
    detail::told_lines batch;
    try {
        batch = next_batch();
    } catch (const std::bad_alloc&) {
        give_up(std::make_error_code(std::errc::not_enough_memory));
        return true;
    }
    notify_later();
    if (batch.empty())
        return false;
    write(std::move(batch), bytes);
    notify_later();
    return true;
}

/// @return empty: there is nothing to write, and the target has to be submitted again
detail::told_lines target::next_batch() {
    std::unique_lock lock(mutex_);
    auto batch = queue_.take(batch_size);
    for (auto& [stream, tag] : new_tags_)
        tags_.insert_or_assign(stream, std::move(tag));
    new_tags_.clear();
    if (batch.empty()) {
        is_submitted_ = false;
        is_over_ = takes_no_more();
        if (is_over_) {
            lock.unlock();
            file_->close();
        }
        return batch;
    }
    is_writing_ = true;
    in_hand_ = 0;
    auto oldest = loop::time_point::max();
    for (const auto& part : batch) {
        const auto size = size_of(part);
        in_hand_ += size;
        // The line that only reports a loss may stand before older lines.
        if (size != 0)
            oldest = std::min(oldest, part.run->time);
    }
    taken_ += in_hand_;
    if (oldest != loop::time_point::max())
        reached_ = oldest;
    return batch;
}

void target::write(detail::told_lines batch, std::string& bytes) noexcept {
    std::error_code error;
    try {
        bytes.clear();
        format(batch, bytes);
        batch.clear();
        error = file_->write(bytes);
    } catch (const std::bad_alloc&) {
        error = std::make_error_code(std::errc::not_enough_memory);
    }
    if (error)
        return give_up(error);
    const std::lock_guard lock(mutex_);
    is_writing_ = false;
}

void target::format(const detail::told_lines& batch, std::string& bytes) {
    for (const auto& part : batch) {
        if (is_mid_line_ && part.lost != detail::loss{})
            bytes += '\n';  // the loss gets a line of its own
        const auto found = tags_.find({part.run->index, part.run->from});
        tagger_.write(bytes, part, found == tags_.end() ? std::string_view() : found->second,
                      part.run->wall);
        if (!bytes.empty())
            is_mid_line_ = !ends_lines_ && bytes.back() != '\n';
    }
}

void target::give_up(std::error_code why) noexcept {
    const std::lock_guard lock(mutex_);
    error_ = why;
    is_writing_ = false;
    queue_.clear();
}

/// Somebody waits for these calls, so this waits until there is memory for them.
void target::notify_later() noexcept {
    for (;;) {
        try {
            {
                const std::lock_guard lock(mutex_);
                if (std::ranges::none_of(waiters_,
                                         [this](const waiter& waits) { return is_met(waits); }))
                    return;
            }
            return loop_.post([self = shared_from_this()] { self->notify_waiters(); });
        } catch (const std::bad_alloc&) {
            std::this_thread::sleep_for(1ms);
        }
    }
}

}  // namespace cohort::output
