// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "protocol/trace/stack.hpp"

#include <cohort/error_record.hpp>

#include <array>
#include <climits>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace cohort::protocol {

/// Writes JSON from within a signal handler: no allocation, no lock, output by write(2) alone.
class raw_json {
public:
    /// The memory that it needs, for static storage.
    struct memory {
        std::array<char, 1024> buffer;
        std::array<char, PATH_MAX> program;  // the path of the program
    };
    /// @param offset  where in the file the output begins; negative: at its end, or a pipe
    raw_json(memory& use, int fd, off_t offset) noexcept
        : buffer_(use.buffer), program_(use.program), fd_(fd), offset_(offset) {}

    /// Adds `literal` unchanged.
    raw_json& text(std::string_view literal) noexcept;
    raw_json& number(std::integral auto value) noexcept {
        return digits(value < 0, static_cast<std::uint64_t>(value));
    }
    /// Adds a string in quotation marks, with escapes.
    raw_json& quoted(std::string_view value) noexcept;
    /// Adds an array with the place of each call, newest first. Each element is written to the file
    /// as soon as it is complete.
    raw_json& frames(std::span<const std::uintptr_t> calls) noexcept;
    /// Writes what is in the buffer. If that fails, this and all later output is lost.
    void flush() noexcept;
    /// How many bytes flush() has written so far.
    std::uint64_t length() const noexcept { return length_; }

private:
    void put(char c) noexcept;
    raw_json& digits(bool negative, std::uint64_t value) noexcept;
    void module_of(std::uintptr_t call) noexcept;

    std::span<char> buffer_;
    std::span<char> program_;
    int fd_;
    off_t offset_;
    bool broken_ = false;
    std::uint64_t length_ = 0;
    std::size_t held_ = 0;
    std::string_view program_path_;  // empty until a frame needs it
};

/// The program or a shared library, as it is loaded.
struct module {
    const char* path = "";                // as the loader has it; empty: the program itself
    std::uintptr_t base = 0;              // how far its addresses in memory are above the file's
    std::span<const std::byte> build_id;  // a view of the module's memory; empty: it has none
};

/// The module that holds this address. Async-signal-safe from glibc 2.35 on. What is found stays
/// valid for as long as the module is loaded.
/// @return false: no module holds it
/// @source _dl_find_object(3), dl_iterate_phdr(3)
bool find_module(std::uintptr_t address, module& found) noexcept;

/// The module with this build-id, in this process. @return false: none has it
bool find_module(std::span<const std::byte> build_id, module& found) noexcept;

/// Whether the file at this path has this build-id. The file that a module was loaded from may have
/// been replaced since.
bool file_has_build_id(const char* path, std::span<const std::byte> build_id) noexcept;

}  // namespace cohort::protocol

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
