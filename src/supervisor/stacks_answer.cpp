// SPDX-License-Identifier: BSL-1.0
#include "supervisor/stacks_answer.hpp"

#include "record/crash_json.hpp"

#include <array>
#include <cerrno>
#include <cstddef>
#include <span>
#include <utility>

#include <csignal>
#include <poll.h>
#include <unistd.h>

namespace cohort::supervisor {

namespace {

constexpr std::size_t longest = record::crash_limit;  // because the worker may write anything
constexpr const char* end_of_answer = "]}\n";

}  // namespace

stacks_answer::stacks_answer(engine::engine& loop, engine::background_thread& parsing,
                             sys::unique_fd pipe)
    : loop_(loop), parsing_(parsing), pipe_(std::move(pipe)) {}

bool stacks_answer::is_hung_up() const noexcept {
    pollfd end{pipe_.get(), POLLIN, 0};
    return ::poll(&end, 1, 0) > 0 && (end.revents & POLLHUP) != 0;
}

void stacks_answer::await(engine::time_point deadline,
                          std::function<void(std::vector<activity>)> then) {
    then_ = std::move(then);
    limit_ = loop_.timer().at(deadline, [self = shared_from_this()] {
        self->limit_.reset();
        self->finish();
    });
    watch();
}

void stacks_answer::watch() {
    loop_.watch_readable(pipe_.get(), [self = shared_from_this()] {
        if (self->then_)
            self->take();
    });
}

void stacks_answer::take() {
    std::array<char, 16384> buffer;
    for (;;) {
        const ssize_t count = ::read(pipe_.get(), buffer.data(), buffer.size());
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0 && errno == EAGAIN && !text_.ends_with(end_of_answer))
            return watch();
        if (count <= 0 || text_.size() > longest)
            return finish();
        text_.append(buffer.data(), static_cast<std::size_t>(count));
    }
}

void stacks_answer::finish() {
    if (limit_)
        loop_.timer().cancel(*std::exchange(limit_, std::nullopt));
    if (!then_)
        return;
    struct job {
        std::string text;
        std::vector<activity> told;
    };
    auto answer = std::make_shared<job>(job{std::move(text_), {}});
    being_parsed_ = true;
    parsing_.run(
        [answer] {
            answer->told = record::read_activities(std::as_bytes(std::span(answer->text)));
        },
        [self = shared_from_this(), answer, then = std::exchange(then_, nullptr)] {
            self->being_parsed_ = false;
            then(std::move(answer->told));
        });
}

}  // namespace cohort::supervisor
