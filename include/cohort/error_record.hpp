// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace cohort {

namespace detail::inline v0_1 {
struct error_record_access;
}

/// One call of a stack: captured in the worker, named in the parent.
class stack_frame {
public:
    std::string function;      ///< demangled; empty: the module says no name
    std::string file;          ///< of the source; empty: the module has no debug information
    int line = 0;              ///< in that file, from 1; 0: not known
    bool inlined = false;      ///< into the frame that stands before it
    std::string module;        ///< path of the program or library that the call is in
    std::uint64_t offset = 0;  ///< of the call in it: what `addr2line -e module` takes
    std::string build_id;      ///< of the module, in hexadecimal; empty: it has none

    /// The same in every field.
    friend bool operator==(const stack_frame&, const stack_frame&) = default;
};

/// A worker's own account of its failure, or a command's error file.
class error_record {
public:
    std::string type;     ///< demangled type of the exception; may be empty for commands
    std::string message;  ///< what() of the exception
    std::string trace;    ///< the text a person reads; ends with the message
    /// The stack of the throw, newest call last, from the worker's function on. Empty when it is
    /// not known: of a command, and of an exception that was made without a throw.
    std::vector<stack_frame> frames;
    /// Of a std::system_error (and of what is derived from it): the value of its code ...
    int code = 0;
    std::string category;  ///< ... and its category's name; empty: it is none
    /// What it was thrown on account of, from the next to the first cause: the exceptions nested in
    /// it (std::nested_exception), and the failures of groups that the worker had itself.
    std::vector<error_record> nested;
    /// In `nested`, the failure of a worker of the failed worker's own group: its index; else -1.
    int worker = -1;
    pid_t pid = 0;  ///< of that worker: for logs, never for kill()
    /// The time of day at which it was written, as the worker says.
    std::optional<std::chrono::system_clock::time_point> timestamp;

    /// The same in every field.
    friend bool operator==(const error_record&, const error_record&) = default;

private:
    friend struct detail::error_record_access;
    std::string value_;  // of the exception, as its error_type has saved it
};

/// Where a signal ended a worker's function.
class crash_record {
public:
    int signal = 0;             ///< SIGSEGV, SIGBUS, SIGILL, SIGFPE or SIGABRT
    int code = 0;               ///< si_code (sigaction(2)): why it was sent
    std::uint64_t address = 0;  ///< si_addr: of the fault; 0 of SIGABRT
    /// The text a person reads: the calls, then "SIGSEGV at address 0x10 (address not mapped)".
    std::string trace;
    std::vector<stack_frame> frames;  ///< newest call last

    /// The same in every field.
    friend bool operator==(const crash_record&, const crash_record&) = default;
};

/// What a thread of a worker function, or a process of a command, was doing when the group was
/// about to stop it. (options::stack_on_stop)
class activity {
public:
    pid_t id = 0;              ///< of the thread or process: for logs, never for kill()
    std::string name;          ///< of the thread; of a process its command line
    char state = '?';          ///< as ps(1) has it: 'R' running, 'S' asleep, 'T' stopped ...
    std::string wait_channel;  ///< where it sleeps in the kernel; empty: it does not, or not told
    std::vector<stack_frame> frames;  ///< of a worker function's thread: newest call last

    /// The same in every field.
    friend bool operator==(const activity&, const activity&) = default;
};

namespace detail::inline v0_1 {
struct error_record_access {
    static std::string& value(error_record& e) noexcept { return e.value_; }
    static const std::string& value(const error_record& e) noexcept { return e.value_; }
};
}  // namespace detail::inline v0_1

COHORT_API std::string to_string(const error_record& e);  ///< "type: message"
/// `File "train.cpp", line 12, in load(int)`, or what there is of it.
COHORT_API std::string to_string(const stack_frame& f);
COHORT_API std::string to_string(const activity& a);  ///< a line, and one for each frame

}  // namespace cohort
