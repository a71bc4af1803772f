// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/errors.hpp>

#include <exception>
#include <string>
#include <string_view>

namespace cohort {

/// A failure as one line of JSON, to keep it, to send it, or to throw it in another process: with
/// its type, its text and all that it holds. What `exception_from_json` makes of it is equal in
/// every field, within these bounds: texts to 1 MiB (of nested errors 32 KiB), stacks to 256 calls,
/// times of day to the microsecond; what is not valid UTF-8 in a text is replaced. Times of
/// steady_clock are its nanoseconds: they mean something on this machine until it is started anew.
/// @return at most 16 MiB: where that does not suffice without the results of workers, and then
/// without the stacks and the length of their errors.
/// @throws std::length_error  it is longer even so: beyond 65,536 workers it is.
/// @par Thread safety  safe.
/// @par Source  pickle of torch's ProcessException
COHORT_API std::string to_json(const process_exception& e);

/// The failure that `to_json` has written: a process_exception, process_raised_exception,
/// process_exited_exception or group_stopped, for std::rethrow_exception; of a worker function's
/// exception std::rethrow_if_nested throws that, as it did before. Members that are missing,
/// out of range or of another type have the default value, so that a text of another version can
/// be read.
/// @param json  from anywhere: it is bounded before it is parsed, and checked
/// @throws std::invalid_argument  it is no such text; the message says why.
/// @par Thread safety  safe.
COHORT_API std::exception_ptr exception_from_json(std::string_view json);

}  // namespace cohort
