// SPDX-License-Identifier: BSL-1.0
#include "output/targets/target.hpp"

#include "base/values/quantity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include <unistd.h>

namespace cohort::output {

namespace {

/// How much of groups that have ended may wait for one console.
constexpr std::size_t most_of_ended = std::size_t{16} << 20;
/// What each target of an ended group counts as at least: it also keeps a descriptor.
constexpr std::size_t least_of_ended = std::size_t{64} << 10;

std::string bytes_text(std::uint64_t count) {
    return fmt::format("{} byte{}", base::with_separators(count), count == 1 ? "" : "s");
}

}  // namespace

line_style console_style(int fd, bool no_color) noexcept {
    line_style style;
    style.ends_lines = true;
    style.is_terminal = ::isatty(fd) == 1;
    style.colours_tags = style.is_terminal && !no_color;
    return style;
}

target::target(loop::engine& loop, target_settings settings)
    : loop_(loop), name_(std::move(settings.name)), tagger_(settings.style),
      console_(settings.console), threads_(console_           ? console_->thread
                                           : settings.threads ? *settings.threads
                                                              : call_threads::of(loop)),
      ends_lines_(settings.style.ends_lines), queue_(settings.buffer) {}

target::~target() {
    if (console_)
        console_->of_ended -= of_ended_;
}

std::shared_ptr<target> target::make(loop::engine& loop, base::unique_fd file,
                                     target_settings settings) {
    auto rotate = std::move(settings.rotate);
    std::shared_ptr<target> made(new target(loop, std::move(settings)));
    made->file_.emplace(std::move(file), std::move(rotate));
    return made;
}

std::shared_ptr<target> target::make(loop::engine& loop, int borrowed, target_settings settings) {
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

void target::end_stream(int index, int attempt, cohort::stream from, loop::time_point at) noexcept {
    {
        const std::lock_guard lock(mutex_);
        if (takes_no_more())
            return;
        try {
            queue_.end_stream(index, attempt, from, at, std::chrono::system_clock::now());
        } catch (const std::bad_alloc&) {
            // The loss is not reported.
        }
        latest_ = std::max(latest_, at);
        if (queue_.empty())
            return;
    }
    wake_writer();
}

void target::close() {
    bool closes_now = false;
    {
        const std::lock_guard lock(mutex_);
        is_closed_ = true;
        if (!is_submitted_ && queue_.empty() && (console_ || !file_->is_owned()))
            closes_now = !std::exchange(is_over_, true);
    }
    if (closes_now || (console_ && leaves_out_rest()))
        close_file();
    else
        wake_writer();  // even closing a file may wait for a file server
}

/// For a console that takes nothing, because groups that end would fill memory with their lines.
/// @return whether nobody uses the file any more
bool target::leaves_out_rest() noexcept {
    {
        const std::lock_guard lock(mutex_);
        if (!is_submitted_ || of_ended_ != 0)
            return false;
        of_ended_ = queued() + least_of_ended;
        if ((console_->of_ended += of_ended_) <= most_of_ended)
            return false;
        error_ = std::make_error_code(std::errc::no_buffer_space);
        queue_.clear();
    }
    if (!threads_.withdraw(this))
        return false;  // its last batch is being written
    {
        const std::lock_guard lock(mutex_);
        is_over_ = true;
    }
    notify_later();
    return true;
}

/// Without the console's thread, which may wait. Even close(2) may wait, for a process that holds
/// the lock of a pipe.
void target::close_file() {
    loop_.post([self = shared_from_this()] {
        self->loop_.call(
            [self] {
                self->file_->close();
                return 0;
            },
            [](int) {});
    });
}

// --- who waits ---

bool target::has_room() const {
    const std::lock_guard lock(mutex_);
    return error_ || queue_.has_room();
}

void target::when_room(loop::task then) { await({std::nullopt, std::move(then)}); }

void target::when_written(loop::task then) {
    loop::time_point until;
    {
        const std::lock_guard lock(mutex_);
        until = latest_;
    }
    when_written(until, std::move(then));
}

void target::when_written(loop::time_point until, loop::task then) {
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
        loop_.post([self = shared_from_this()] { self->notify_waiters(); });
}

bool target::is_met(const waiter& waits) const noexcept {
    if (error_)
        return true;
    if (!waits.written_until)
        return queue_.has_room();
    return is_idle() || reached_ > *waits.written_until;
}

/// Calls those who need not wait any more.
void target::notify_waiters() {
    for (;;) {
        loop::task then;
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
