// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace cohort {

namespace detail::inline v0_1 {
struct error_record_access;
}

/// One call on a stack. The worker captures the addresses, the parent looks up the names.
class stack_frame {
public:
    std::string function;      ///< demangled name; empty: the module has no name for it
    std::string file;          ///< source file; empty: the module has no debug information
    int line = 0;              ///< line in that file, from 1; 0: not known
    bool inlined = false;      ///< true: inlined into the function of the frame before
    std::string module;        ///< path of the program or library that contains the call
    std::uint64_t offset = 0;  ///< the call's offset in the module, for `addr2line -e module`
    std::string build_id;      ///< build ID of the module in hexadecimal; empty: it has none

    /// Whether all fields are equal.
    friend bool operator==(const stack_frame&, const stack_frame&) = default;
};

/// What a worker wrote about its failure: the exception that left a worker function, or the content
/// of a command's error file (options::error_file).
class error_record {
public:
    std::string type;     ///< demangled type of the exception; may be empty for commands
    std::string message;  ///< what() of the exception
    std::string trace;    ///< the failure as text for people; ends with the message
    /// The stack at the throw: begins with the worker function, ends with the newest call. Empty if
    /// it is not known: for commands, and for an exception that was made without a throw.
    std::vector<stack_frame> frames;
    /// The value of code() if the exception is a std::system_error or derived from it; else 0.
    int code = 0;
    std::string category;  ///< the name of the category of that code; empty: there is no code
    /// The causes of the exception, the most direct one first: the exceptions nested in it
    /// (std::nested_exception), and the failures of groups that the worker itself started.
    std::vector<error_record> nested;
    /// In an element of `nested` that is the failure of a worker of such a group: the index of that
    /// worker. Else -1.
    int worker = -1;
    pid_t pid = 0;  ///< the process ID of that worker, else 0; for logs, never for kill()
    /// When the record was written, by the worker's clock; empty if the worker did not say.
    std::optional<std::chrono::system_clock::time_point> timestamp;

    /// Whether all fields are equal.
    friend bool operator==(const error_record&, const error_record&) = default;

private:
    friend struct detail::error_record_access;
    std::string value_;  // what the error_type of the exception saved
};

/// Where a signal ended a worker function. See options::crash_record.
class crash_record {
public:
    int signal = 0;             ///< SIGSEGV, SIGBUS, SIGILL, SIGFPE or SIGABRT
    int code = 0;               ///< si_code: why the signal was sent, see sigaction(2)
    std::uint64_t address = 0;  ///< si_addr: the address of the fault; 0 for SIGABRT
    /// The crash as text for people: the calls, then, for example, "SIGSEGV at address 0x10
    /// (address not mapped)".
    std::string trace;
    std::vector<stack_frame> frames;  ///< the stack, newest call last

    /// Whether all fields are equal.
    friend bool operator==(const crash_record&, const crash_record&) = default;
};

/// What a thread of a worker function, or a process of a command, was doing when the group was
/// about to stop it. See options::stack_on_stop.
class activity {
public:
    pid_t id = 0;      ///< ID of the thread or process; for logs, never for kill()
    std::string name;  ///< name of the thread, or command line of the process
    char state = '?';  ///< as in ps(1): 'R' running, 'S' asleep, 'T' stopped ...
    /// The kernel function in which it sleeps; empty if it does not sleep or the kernel hides it.
    std::string wait_channel;
    /// The stack of a thread of a worker function, newest call last; empty if it is not known.
    std::vector<stack_frame> frames;

    /// Whether all fields are equal.
    friend bool operator==(const activity&, const activity&) = default;
};

/// A record, or none. Copies share the record, because a worker may have filled it with megabytes.
/// Read like a std::optional, but the record in it does not change: assign a new one.
/// @thread_safety distinct objects: safe, also if they share the record.
template <class T>
class shared_record {
public:
    /// No record.
    shared_record() noexcept = default;
    /// No record.
    shared_record(std::nullopt_t) noexcept {}
    /// Takes over a record.
    shared_record(T record) : record_(std::make_shared<const T>(std::move(record))) {}
    /// Takes over a record, if there is one.
    shared_record(std::optional<T> record) {
        if (record)
            *this = shared_record(*std::move(record));
    }

    /// Whether there is a record.
    bool has_value() const noexcept { return record_ != nullptr; }
    /// Whether there is a record.
    explicit operator bool() const noexcept { return has_value(); }
    /// The record, which must be there.
    const T& operator*() const noexcept { return *record_; }
    /// The record, which must be there.
    const T* operator->() const noexcept { return record_.get(); }
    /// The record. @throws std::bad_optional_access  there is none
    const T& value() const { return record_ ? *record_ : throw std::bad_optional_access(); }
    /// A copy of the record, or `otherwise`.
    template <class U>
    T value_or(U&& otherwise) const {
        return record_ ? *record_ : static_cast<T>(std::forward<U>(otherwise));
    }
    /// A copy of the record that can be changed.
    operator std::optional<T>() const {
        return record_ ? std::optional<T>(*record_) : std::nullopt;
    }
    /// Lets go of the record.
    void reset() noexcept { record_.reset(); }

    /// Whether both have equal records, or none.
    friend bool operator==(const shared_record& a, const shared_record& b) {
        return a.record_ == b.record_ || (a.record_ && b.record_ && *a.record_ == *b.record_);
    }

private:
    std::shared_ptr<const T> record_;
};

namespace detail::inline v0_1 {
struct error_record_access {
    static std::string& value(error_record& e) noexcept { return e.value_; }
    static const std::string& value(const error_record& e) noexcept { return e.value_; }
};
}  // namespace detail::inline v0_1

COHORT_API std::string to_string(const error_record& e);  ///< "type: message"
/// `File "train.cpp", line 12, in load(int)`, with those parts that are known.
COHORT_API std::string to_string(const stack_frame& f);
COHORT_API std::string to_string(const activity& a);  ///< one line, then one for each frame

}  // namespace cohort
