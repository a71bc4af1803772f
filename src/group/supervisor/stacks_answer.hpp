// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"
#include "loop/runtime/runtime.hpp"

#include <cohort/detail/plan.hpp>
#include <cohort/error_record.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cohort::groups {

/// The answer of a worker function to the request for its stacks. Belongs to the engine's thread.
///
/// Calls on the pipe that take its lock, read(2) and close(2), are made by call_threads, because
/// the worker can hold that lock for as long as it likes.
class stacks_answer : public std::enable_shared_from_this<stacks_answer> {
public:
    stacks_answer(loop::runtime& runtime, base::unique_fd pipe);
    ~stacks_answer();

    /// Whether the function can't answer, because its end of the pipe is closed, for example by
    /// exec(3).
    bool is_hung_up() const noexcept;
    /// Calls `then` once, with the whole answer or with what has come of it by `deadline`. If no
    /// thread can be had to parse it, calls `then` with nothing.
    void await(loop::time_point deadline, base::callback<void(std::vector<activity>)> then);
    /// Whether the answer has come, but `then` has yet to be called.
    bool is_being_parsed() const noexcept { return being_parsed_; }

private:
    void watch();
    void take();
    void took(std::string text, bool is_whole);
    void finish();

    loop::runtime& runtime_;
    bool being_parsed_ = false;
    std::shared_ptr<base::unique_fd> pipe_;
    std::string text_;
    std::optional<loop::timer_id> limit_;
    base::callback<void(std::vector<activity>)> then_;
};

}  // namespace cohort::groups
