// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/options.hpp>

// Sees that of a batch no more workers live at once than may: each takes a place in a file, and
// there are only so many.
namespace chaos {

/// Gives the workers of a batch the file with the places.
void give_places(cohort::options& how);

/// Called in a worker of a batch: takes a place, which the end of the worker gives back. If none is
/// free, more workers live than may, which the test is told.
void take_place(int places);

}  // namespace chaos
