// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"
#include "group/lifecycle/verdict.hpp"
#include "loop/engine/engine.hpp"
#include "loop/threads/background_thread.hpp"

#include <cohort/outcome.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace cohort::groups {

/// What a worker left in its record.
struct record_contents {
    std::optional<groups::function_progress> progress;     // functions only
    std::shared_ptr<const detail::result_bytes> result;    // only if the function returned
    std::string note;  // why something that the worker left is missing here; empty: nothing is
    // Shared here, by the thread that parses: a failed allocation is no fault there.
    shared_record<error_record> error;
    shared_record<crash_record> crash;  // functions only
};

enum class record_kind { control_file, error_file };

/// What reading a record needs.
struct record_readers {
    loop::engine& loop;
    loop::background_thread& parsing;
    std::uint64_t result_limit;  // in bytes
};

/// Closes the record of a worker. Large memory is freed by another thread.
void close_record(base::unique_fd record) noexcept;

/// Reads the record of a worker that has ended, and calls `then` on the engine's thread, whatever
/// the record contains. The record is copied once, through the reactor, in pieces and up to a
/// limit; then the thread `by.parsing` parses the copy.
void read_record(const record_readers& by, base::unique_fd record, record_kind kind,
                 base::callback<void(record_contents)> then);

}  // namespace cohort::groups
