// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/error_record.hpp>

#include <string>

namespace cohort::record {

/// The text that a person reads of a failure, in the form of Python's traceback, newest call last:
///
///     Traceback (most recent call last):
///       File "/src/train.cpp", line 30, in train(int, std::string)
///       File "/src/load.cpp", line 12, in load(int)
///     std::out_of_range: value 7 too large
///
/// What it was thrown on account of stands before it, the first cause first. A record that has no
/// frames but words of its own, such as a Python program's traceback, keeps these.
/// It ends with the message, and is no longer than text::text_limit.
std::string traceback_of(const error_record& error);

/// The calls, then why: "SIGSEGV at address 0x10 (address not mapped)". No longer than text::text_limit.
/// @par Source  sigaction(2), si_code
std::string traceback_of(const crash_record& crash);

/// Its last line: "type: message", with the code of a std::system_error:
/// "std::system_error [generic:2]: open: No such file or directory".
std::string closing_line(const error_record& error);

}  // namespace cohort::record
