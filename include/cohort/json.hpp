// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/errors.hpp>
#include <cohort/outcome.hpp>

#include <exception>
#include <string>
#include <string_view>

namespace cohort {

/// Writes a failure as one line of JSON, to keep it, to send it, or to throw it in another process.
/// The line contains the exception's type, its text and all that it holds. The exception that
/// exception_from_json() makes from it is equal in every field, within these bounds. A text keeps
/// 1 MiB, in nested errors 32 KiB; bytes that are not valid UTF-8 are replaced. What was captured
/// of a stream keeps 1 MiB, of its head and its tail. A stack keeps 256 calls. Times of day keep
/// microseconds. Times of steady_clock are written as its nanoseconds, so they mean something only
/// on this machine and until its next boot.
/// @return at most 16 MiB. If a failure is longer, first the results of workers are left out. Then
///         also their stacks are left out, and the texts of their errors and streams are shortened
///         to 1 KiB. Then the texts of their streams are left out; how many bytes they had stays.
/// @throws std::length_error  the failure is longer even then, or has more than 65,536 outcomes
/// @thread_safety safe.
/// @source pickle of torch's ProcessException
COHORT_API std::string to_json(const process_exception& e);

/// Writes how a group ended as one line of JSON: an object with `success`, `elapsed` in
/// nanoseconds, `name`, `host`, `hosts` if it ran on several, `time_limit` in nanoseconds if there
/// was one, and `outcomes`, which has all workers in the form that they have in the JSON of a
/// failure. There `work` is a worker's command line or function; `host` is there if the group ran
/// on several; `started_at` and `ended_at` are times of day by ISO 8601, in UTC. The texts have the
/// same bounds. This is the report.json of options::logs.
/// @return at most 64 MiB; a longer report is shortened as a failure is
/// @throws std::length_error  the report is longer even then, or has more than a million outcomes
/// @thread_safety safe.
COHORT_API std::string to_json(const report& r);

/// Reads a failure that to_json() wrote, for std::rethrow_exception: a process_exception,
/// process_raised_exception, process_exited_exception, host_lost, group_stopped or group_timed_out.
/// std::rethrow_if_nested on a process_raised_exception throws the worker function's exception, as
/// it did before. Members that are missing, out of range or of another type get their default
/// value, so that the text of another version can be read.
/// @param json  a text from any source; it is checked
/// @throws std::invalid_argument  `json` is no such text, or longer than 16 MiB; what() says why
/// @thread_safety safe.
COHORT_API std::exception_ptr exception_from_json(std::string_view json);

}  // namespace cohort
