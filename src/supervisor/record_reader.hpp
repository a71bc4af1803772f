// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "engine/background_thread.hpp"
#include "engine/engine.hpp"
#include "lifecycle/verdict.hpp"
#include "sys/unique_fd.hpp"

#include <cohort/outcome.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace cohort::supervisor {

/// What a worker left in its record.
struct record_contents {
    std::optional<lifecycle::function_progress> progress;  // of a function
    std::shared_ptr<const detail::result_bytes> result;    // of a function that returned
    std::string note;  // why something that the worker left is not here; empty: all is
    std::optional<error_record> error;
    std::optional<crash_record> crash;  // of a function
};

enum class record_kind { control_file, error_file };

/// With what records are read.
struct record_readers {
    engine::engine& loop;
    engine::background_thread& parsing;
    std::uint64_t result_limit;  // in bytes
};

/// Reads the record of a worker that has ended, through the reactor, and calls `then` on the
/// engine's thread. Copies once, within a bound and by pieces, then parses on the other thread;
/// whatever is in it, `then` is called.
void read_record(const record_readers& by, sys::unique_fd record, record_kind kind,
                 std::function<void(record_contents)> then);

}  // namespace cohort::supervisor
