// SPDX-License-Identifier: BSL-1.0
#include "targets/target.hpp"

#include "values/quantity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include <unistd.h>

namespace cohort::output {

namespace {

std::string bytes_text(std::uint64_t count) {
    return fmt::format("{} byte{}", values::with_separators(count), count == 1 ? "" : "s");
}

}  // namespace

line_style console_style(int fd, bool no_color) noexcept {
    line_style style;
    style.ends_lines = true;
    style.is_terminal = ::isatty(fd) == 1;
    style.colours_tags = style.is_terminal && !no_color;
    return style;
}

target::target(engine::engine& loop, target_settings settings)
    : loop_(loop), name_(std::move(settings.name)), tagger_(settings.style), turn_(settings.turn),
      shared_(settings.shared), ends_lines_(settings.style.ends_lines), queue_(settings.buffer) {}

std::shared_ptr<target> target::make(engine::engine& loop, sys::unique_fd file,
                                     target_settings settings) {
    auto rotate = std::move(settings.rotate);
    std::shared_ptr<target> made(new target(loop, std::move(settings)));
    made->file_.emplace(std::move(file), std::move(rotate));
    return made;
}

std::shared_ptr<target> target::make(engine::engine& loop, int borrowed, target_settings settings) {
    std::shared_ptr<target> made(new target(loop, std::move(settings)));
    made->file_.emplace(borrowed);
    return made;
}

// --- what is added ---

void target::set_tag(int index, cohort::stream from, std::string tag) {
    const std::lock_guard lock(mutex_);
    new_tags_.emplace_back(std::pair(index, from), std::move(tag));
}

void target::add(std::shared_ptr<const detail::line_run> run, cohort::when_full full) noexcept {
    {
        const std::lock_guard lock(mutex_);
        if (takes_no_more())
            return;
        try {
            queue_.add(run, full);
        } catch (const std::bad_alloc&) {
            left_out_ += run->text.size();
            return;
        }
        added_ += run->text.size();
        latest_ = std::max(latest_, run->time);
    }
    wake_writer();
}

void target::leave_out(const detail::line_run& run) noexcept {
    const std::lock_guard lock(mutex_);
    if (takes_no_more())
        return;
    try {
        queue_.leave_out(run);
        added_ += run.text.size();
    } catch (const std::bad_alloc&) {
        left_out_ += run.text.size();
    }
}

void target::end_stream(int index, int attempt, cohort::stream from,
                        engine::time_point at) noexcept {
    {
        const std::lock_guard lock(mutex_);
        if (takes_no_more())
            return;
        try {
            queue_.end_stream(index, attempt, from, at, std::chrono::system_clock::now());
        } catch (const std::bad_alloc&) {
            // The loss stays untold.
        }
        latest_ = std::max(latest_, at);
        if (queue_.empty())
            return;
    }
    wake_writer();
}

void target::close() {
    {
        const std::lock_guard lock(mutex_);
        is_closed_ = true;
        // A file is closed by a thread, because even that may wait for a file server.
        if (!has_thread_ && queue_.empty() && !file_->is_owned())
            is_over_ = true;
    }
    wake_writer();
}

// --- who waits ---

bool target::has_room() const {
    const std::lock_guard lock(mutex_);
    return error_ || queue_.has_room();
}

void target::when_room(engine::task then) { await({std::nullopt, std::move(then)}); }

void target::when_written(engine::task then) {
    engine::time_point until;
    {
        const std::lock_guard lock(mutex_);
        until = latest_;
    }
    when_written(until, std::move(then));
}

void target::when_written(engine::time_point until, engine::task then) {
    await({until, std::move(then)});
}

void target::await(waiter waits) {
    bool is_met_now = false;
    {
        const std::lock_guard lock(mutex_);
        is_met_now = is_met(waits);
        waiters_.push_back(std::move(waits));
    }
    if (is_met_now)
        loop_.post([self = shared_from_this()] { self->tell(); });
}

bool target::is_met(const waiter& waits) const noexcept {
    if (error_)
        return true;
    if (!waits.written_until)
        return queue_.has_room();
    return is_idle() || reached_ > *waits.written_until;
}

/// Calls those who need not wait any more.
void target::tell() {
    for (;;) {
        engine::task then;
        {
            const std::lock_guard lock(mutex_);
            const auto found = std::ranges::find_if(
                waiters_, [this](const waiter& waits) { return is_met(waits); });
            if (found == waiters_.end())
                return;
            then = std::move(found->then);
            waiters_.erase(found);
        }
        then();
    }
}

// --- notes ---

std::string target::trouble() const {
    const std::lock_guard lock(mutex_);
    if (error_)
        return fmt::format("{}: {} after {}", name_, error_.message(),
                           bytes_text(file_->written()));
    if (left_out_ != 0)
        return fmt::format("{}: {} left out, because there was no memory", name_,
                           bytes_text(left_out_));
    if (const auto why = file_->not_rotated())
        return fmt::format("{}: not rotated, so it is too large: {}", name_, why.message());
    return {};
}

std::string target::pending() const {
    const std::lock_guard lock(mutex_);
    if (error_ || is_idle())
        return {};
    std::uint64_t in_hand = 0;
    if (is_writing_) {
        in_hand = file_->unwritten();
        if (in_hand == 0)
            in_hand = in_hand_;  // not formatted yet, or waits for its turn
    }
    const auto count = queued() + in_hand;
    return fmt::format("{}: {} {} not yet written", name_, bytes_text(count),
                       count == 1 ? "is" : "are");
}

std::string target::note() const {
    auto text = trouble();
    return text.empty() ? pending() : text;
}

}  // namespace cohort::output
