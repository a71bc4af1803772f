// SPDX-License-Identifier: BSL-1.0
#include "attempts.hpp"

#include "process_locks.hpp"
#include "reports.hpp"

#include <fmt/format.h>

namespace chaos {

namespace {

constexpr int locks_number = 6;

}  // namespace

void give_locks(cohort::options& how) { give_lock_file(how, locks_number); }

void lock_index(int index) {
    if (!lock_byte(locks_number, index))
        tell_broken(fmt::format("worker {} starts again while its last attempt lives", index));
}

}  // namespace chaos
