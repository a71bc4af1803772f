// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/error_record.hpp>

#include <string>

namespace cohort::protocol {

/// A failure as text for people, in the form of Python's traceback, newest call last:
///
///     Traceback (most recent call last):
///       File "/src/train.cpp", line 30, in train(int, std::string)
///       File "/src/load.cpp", line 12, in load(int)
///     std::out_of_range: value 7 too large
///
/// The causes of the failure stand before it, the first cause first. A record without frames but
/// with a trace, such as a Python program's, keeps that trace.
/// The text ends with the message, and is no longer than base::text_limit.
std::string traceback_of(const error_record& error);

/// A crash as text: the calls, then "SIGSEGV at address 0x10 (address not mapped)". No longer than
/// base::text_limit.
/// @source sigaction(2), si_code
std::string traceback_of(const crash_record& crash);

/// The last line of a traceback: "type: message", with the code of a std::system_error:
/// "std::system_error [generic:2]: open: No such file or directory".
std::string closing_line(const error_record& error);

}  // namespace cohort::protocol
