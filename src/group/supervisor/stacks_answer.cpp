// SPDX-License-Identifier: BSL-1.0
#include "group/supervisor/stacks_answer.hpp"

#include "output/targets/call_threads.hpp"
#include "protocol/record/error_json.hpp"

#include <array>
#include <cerrno>
#include <cstddef>
#include <span>
#include <utility>

#include <csignal>
#include <poll.h>
#include <unistd.h>

namespace cohort::groups {

namespace {

constexpr std::size_t longest = protocol::crash_limit;  // because the worker may write anything
constexpr const char* end_of_answer = "]}\n";

/// Reads what is there. @return whether it is the answer's end, or too long
bool read_answer(int fd, std::string& text) {
    std::array<char, 16384> buffer;
    for (;;) {
        const ssize_t count = ::read(fd, buffer.data(), buffer.size());
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0 && errno == EAGAIN)
            return text.ends_with(end_of_answer);
        if (count <= 0 || text.size() > longest)
            return true;
        text.append(buffer.data(), static_cast<std::size_t>(count));
    }
}

}  // namespace

stacks_answer::stacks_answer(loop::runtime& runtime, base::unique_fd pipe)
    : runtime_(runtime), pipe_(std::make_shared<base::unique_fd>(std::move(pipe))) {}

stacks_answer::~stacks_answer() {
    if (!runtime_.is_own())
        (void)pipe_->release();  // in a forked copy the number may be another file's
    else
        output::call_threads::of(runtime_.loop())
            .run([pipe = std::move(pipe_)] { pipe->reset(); }, [] {});
}

bool stacks_answer::is_hung_up() const noexcept {
    pollfd end{pipe_->get(), POLLIN, 0};
    return ::poll(&end, 1, 0) > 0 && (end.revents & POLLHUP) != 0;
}

void stacks_answer::await(loop::time_point deadline,
                          base::callback<void(std::vector<activity>)> then) {
    then_ = std::move(then);
    limit_ = runtime_.loop().timer().at(deadline, [self = shared_from_this()] {
        self->limit_.reset();
        self->finish();
    });
    watch();
}

void stacks_answer::watch() {
    runtime_.loop().watch_readable(pipe_->get(), [self = shared_from_this()] {
        if (self->then_)
            self->take();
    });
}

void stacks_answer::take() {
    struct job {
        std::string text;
        bool is_whole = false;
    };
    auto taken = std::make_shared<job>(job{text_, false});
    auto& threads = output::call_threads::of(runtime_.loop());
    threads.run([pipe = pipe_, taken] { taken->is_whole = read_answer(pipe->get(), taken->text); },
                [self = shared_from_this(), taken] {
                    if (self->then_)
                        self->took(std::move(taken->text), taken->is_whole);
                });
}

/// Without a thread nothing was read; the limit ends the wait.
void stacks_answer::took(std::string text, bool is_whole) {
    const bool is_more = text.size() > text_.size();
    text_ = std::move(text);
    if (is_whole)
        finish();
    else if (is_more)
        watch();
}

void stacks_answer::finish() {
    if (limit_)
        runtime_.loop().timer().cancel(*std::exchange(limit_, std::nullopt));
    if (!then_)
        return;
    struct job {
        std::string text;
        std::vector<activity> found;
    };
    auto answer = std::make_shared<job>(job{std::move(text_), {}});
    being_parsed_ = true;
    runtime_.parsing().run(
        [answer] {
            answer->found = protocol::read_activities(std::as_bytes(std::span(answer->text)));
        },
        [self = shared_from_this(), answer, then = std::exchange(then_, nullptr)] {
            self->being_parsed_ = false;
            then(std::move(answer->found));
        });
}

}  // namespace cohort::groups
