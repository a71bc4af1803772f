// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "engine/background_thread.hpp"
#include "engine/engine.hpp"
#include "sys/unique_fd.hpp"

#include <cohort/detail/plan.hpp>
#include <cohort/error_record.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cohort::supervisor {

/// What a worker function writes when it is asked for its stacks. Belongs to the engine's thread.
class stacks_answer : public std::enable_shared_from_this<stacks_answer> {
public:
    stacks_answer(engine::engine& loop, engine::background_thread& parsing, sys::unique_fd pipe);

    /// The function can't answer any more: it has closed its end, by exec(3) say.
    bool is_hung_up() const noexcept;
    /// Calls `then` once: with the whole answer, or with what there is of it at `deadline`.
    /// Where there is no thread to parse it, with nothing.
    void await(engine::time_point deadline, std::function<void(std::vector<activity>)> then);
    /// It has come, and `then` is still to be called.
    bool is_being_parsed() const noexcept { return being_parsed_; }

private:
    void watch();
    void take();
    void finish();

    engine::engine& loop_;
    engine::background_thread& parsing_;
    bool being_parsed_ = false;
    sys::unique_fd pipe_;
    std::string text_;
    std::optional<engine::timer_id> limit_;
    std::function<void(std::vector<activity>)> then_;
};

}  // namespace cohort::supervisor
