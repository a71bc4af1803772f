// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <string>

namespace bench {

/// The task of every peer: start `workers` processes of `program`, which write `bytes` together,
/// and write what they print, with "[index]: " before each line, to /dev/null.
struct tee_job {
    std::string program;
    int workers = 1;
    int bytes = 0;  // 0: the workers write until they are ended

    std::string bytes_of_one() const { return std::to_string(bytes / workers); }
};

/// Standard output is /dev/null while it runs.
/// @throws std::runtime_error  something the workers wrote is missing
using run_tee = void (*)(const tee_job&);

void tee_by_console(const tee_job&);  // cohort::console()
void tee_by_file(const tee_job&);     // cohort::file("/dev/null").tagged()
void tee_by_splice(const tee_job&);   // no tags: the least that a parent must do
void tee_by_boost(const tee_job&);    // Boost.Process v2 and async_read_until

/// tee_by_splice() with one worker, which writes to the descriptor `told` how long it took.
/// @param formatted  it makes each line by snprintf
void splice_one(const tee_job&, int told, bool formatted);

/// @throws std::runtime_error  `seen` is not what the workers of `todo` have written
void check_bytes(const tee_job& todo, long long seen);

}  // namespace bench
