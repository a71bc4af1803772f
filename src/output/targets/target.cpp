// SPDX-License-Identifier: BSL-1.0
#include "output/targets/target.hpp"

#include "base/values/quantity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <thread>
#include <utility>

#include <unistd.h>

namespace cohort::output {

namespace {

/// How much of groups that have ended may wait for one console.
constexpr std::size_t most_of_ended = std::size_t{16} << 20;
/// What each target of an ended group counts as at least: it also keeps a descriptor.
constexpr std::size_t least_of_ended = std::size_t{64} << 10;

}  // namespace

line_style console_style(int fd, bool no_color) noexcept {
    line_style style;
    style.ends_lines = true;
    style.is_terminal = ::isatty(fd) == 1;
    style.colours_tags = style.is_terminal && !no_color;
    return style;
}

console_writer& console_writer::of(loop::engine& loop, int fd) {
    static constinit std::array<std::atomic<of_loop<console_writer>*>, 2> latest{};
    return latest_of(latest[fd == STDOUT_FILENO ? 0 : 1], loop);
}

kept_lines::~kept_lines() {
    if (console_)
        console_->of_ended -= bytes_;
}

bool kept_lines::count(std::uint64_t bytes) noexcept {
    bytes_ = bytes + least_of_ended;
    return (console_->of_ended += bytes_) <= most_of_ended;
}

namespace {

using namespace std::chrono_literals;

constexpr std::size_t batch_size = std::size_t{128} << 10;

std::string bytes_text(std::uint64_t count) {
    return fmt::format("{} byte{}", base::with_separators(count), count == 1 ? "" : "s");
}

}  // namespace

target::target(loop::engine& loop, target_settings settings)
    : loop_(loop), name_(std::move(settings.name)), kept_(settings.console),
      threads_(settings.console   ? settings.console->thread
               : settings.threads ? *settings.threads
                                  : call_threads::of(loop)),
      formatter_(settings.style), lines_(settings.buffer) {}

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
        if (!lines_.add(run, full))
            return;
    }
    wake_writer();
}

void target::leave_out(const detail::line_run& run) noexcept {
    const std::lock_guard lock(mutex_);
    lines_.leave_out(run);
}

void target::lose(int index, int attempt, cohort::stream from,
                  const detail::loss& lost) noexcept {
    const std::lock_guard lock(mutex_);
    lines_.lose(index, attempt, from, lost);
}

void target::end_stream(int index, int attempt, cohort::stream from, loop::time_point at) noexcept {
    {
        const std::lock_guard lock(mutex_);
        lines_.end_stream(index, attempt, from, at, std::chrono::system_clock::now());
        if (lines_.is_empty())
            return;
    }
    wake_writer();
}

void target::close() {
    bool closes_now = false;
    {
        const std::lock_guard lock(mutex_);
        lines_.close();
        if (!is_submitted_ && lines_.is_empty() && (kept_.console() || !file_->is_owned()))
            closes_now = !std::exchange(is_over_, true);
    }
    if (closes_now || (kept_.console() && leaves_out_rest()))
        close_file();
    else
        wake_writer();  // even closing a file may wait for a file server
}

bool target::reopen() noexcept {
    const std::lock_guard lock(mutex_);
    if (is_over_ || lines_.error())
        return false;
    lines_.reopen();
    return true;
}

/// For a console that takes nothing. @return whether nobody uses the file any more
bool target::leaves_out_rest() noexcept {
    {
        const std::lock_guard lock(mutex_);
        if (!is_submitted_ || kept_.are_counted() || kept_.count(lines_.waiting()))
            return false;
        lines_.give_up(std::make_error_code(std::errc::no_buffer_space));
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
    return lines_.has_room();
}

void target::when_room(loop::task then) { await({std::nullopt, std::move(then)}); }

void target::when_written(loop::task then) {
    loop::time_point until;
    {
        const std::lock_guard lock(mutex_);
        until = lines_.latest();
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
    return waits.written_until ? lines_.is_written(*waits.written_until) : lines_.has_room();
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

// --- the threads that write ---

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
    loop_.post([&loop = loop_, try_again] {
        loop.timer().at(std::chrono::steady_clock::now() + 100ms, try_again);
    });
}

/// Writes a batch. @return false: the thread must not call it again
bool target::step(std::string& bytes) noexcept {
    auto batch = next_batch();
    notify_later();
    if (batch.empty())
        return false;
    write(std::move(batch), bytes);
    notify_later();
    return true;
}

/// @return empty: there is nothing to write, and the target has to be submitted again
detail::line_batch target::next_batch() {
    std::unique_lock lock(mutex_);
    auto batch = lines_.begin_batch(batch_size);
    for (auto& [stream, tag] : new_tags_)
        formatter_.set_tag(stream, std::move(tag));
    new_tags_.clear();
    if (!batch.empty())
        return batch;
    is_submitted_ = false;
    is_over_ = lines_.takes_no_more();
    if (is_over_) {
        lock.unlock();
        file_->close();
    }
    return batch;
}

void target::write(detail::line_batch batch, std::string& bytes) noexcept {
    bytes.clear();
    formatter_.format(batch, bytes);
    batch.clear();
    if (const auto error = file_->write(bytes))
        return give_up(error);
    const std::lock_guard lock(mutex_);
    lines_.end_batch();
}

void target::give_up(std::error_code why) noexcept {
    const std::lock_guard lock(mutex_);
    lines_.give_up(why);
}

void target::notify_later() noexcept {
    {
        const std::lock_guard lock(mutex_);
        if (std::ranges::none_of(waiters_, [this](const waiter& waits) { return is_met(waits); }))
            return;
    }
    loop_.post([self = shared_from_this()] { self->notify_waiters(); });
}

// --- notes ---

std::string target::trouble() const {
    const std::lock_guard lock(mutex_);
    if (const auto error = lines_.error())
        return fmt::format("{}: {} after {}", name_, error.message(), bytes_text(file_->written()));
    if (const auto count = lines_.came_late())
        return fmt::format("{}: {} left out, because the file was closed before", name_,
                           bytes_text(count));
    if (const auto why = file_->not_rotated())
        return fmt::format("{}: not rotated, so it is too large: {}", name_, why.message());
    return {};
}

std::string target::pending() const {
    const std::lock_guard lock(mutex_);
    if (lines_.error() || (lines_.is_empty() && !lines_.is_writing()))
        return {};
    std::uint64_t in_batch = 0;
    if (lines_.is_writing()) {
        in_batch = file_->unwritten();
        if (in_batch == 0)
            in_batch = lines_.in_batch();  // not formatted yet, or waits for its turn
    }
    const auto count = lines_.waiting() + in_batch;
    return fmt::format("{}: {} {} not yet written", name_, bytes_text(count),
                       count == 1 ? "is" : "are");
}

std::string target::note() const {
    auto text = trouble();
    return text.empty() ? pending() : text;
}

}  // namespace cohort::output
