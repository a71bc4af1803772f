// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/error_record.hpp>

#include <cstdint>
#include <vector>

struct backtrace_state;

namespace cohort::protocol {

/// Finds names for the frames of workers that run the same program, in the modules of this process.
/// One thread at a time may use it.
class names {
public:
    /// Gives the frames function, file and line, and adds a frame for each call that was inlined. A
    /// module is recognised by its build-id, wherever it is loaded here and in the worker. Frames
    /// of other modules, or with a function already, stay as they are. The library's own calls at
    /// both ends are removed. The first call reads the debug information (50 ms, or a second for a
    /// large program), so it must not run on a thread that others wait for.
    /// @source libbacktrace; where the library was built without it, dladdr(3): functions only
    void give_to(std::vector<stack_frame>& frames);

private:
    bool can_name(bool of_program);
    std::vector<stack_frame> all_at(const stack_frame& frame, std::uintptr_t address);

    backtrace_state* state_ = nullptr;  // never freed, because libbacktrace has no way to do it
    int made_ = 0;                      // how many states were made
    unsigned long long loads_ = 0;      // how many modules had been loaded when state_ was made
};

}  // namespace cohort::protocol
