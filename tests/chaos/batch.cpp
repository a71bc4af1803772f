// SPDX-License-Identifier: BSL-1.0
#include "batch.hpp"

#include "process_locks.hpp"
#include "reports.hpp"

#include <fmt/format.h>

namespace chaos {

namespace {

constexpr int places_number = 7;

}  // namespace

void give_places(cohort::options& how) { give_lock_file(how, places_number); }

void take_place(int places) {
    for (int place = 0; place < places; ++place)
        if (lock_byte(places_number, place))
            return;
    tell_broken(fmt::format("more than {} workers of a batch live", places));
}

}  // namespace chaos
