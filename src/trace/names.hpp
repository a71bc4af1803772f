// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/error_record.hpp>

#include <cstdint>
#include <vector>

struct backtrace_state;

namespace cohort::trace {

/// What this process knows of its own modules: names for the frames of workers of the same program.
/// Belongs to one thread at a time.
class names {
public:
    /// Function, file and line, and a frame more for each call that was inlined. A module is known
    /// again by its build-id, wherever it lies here and there; frames of others, or with a function
    /// already, stay as they are. The calls of the library on both ends go. The first time takes as
    /// long as it takes to read the debug information (50 ms, or a second for a large program), so
    /// it is no work for a thread that others wait for.
    /// @par Source  libbacktrace; where the library was built without it, dladdr(3): functions only
    void give_to(std::vector<stack_frame>& frames);

private:
    bool can_tell(bool of_program);
    std::vector<stack_frame> all_at(const stack_frame& frame, std::uintptr_t address);

    backtrace_state* state_ = nullptr;  // never freed: libbacktrace has no way
    int made_ = 0;
    unsigned long long loads_ = 0;  // of modules, when it was made
};

}  // namespace cohort::trace
