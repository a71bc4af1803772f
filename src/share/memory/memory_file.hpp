// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"

#include <cohort/sharing.hpp>

#include <cstddef>
#include <string>

namespace cohort::share {

/// Makes the file behind new shared memory: a memfd of `bytes` bytes, all zero, sealed against
/// resizing.
/// @param what  the memory for the text of an error
/// @throws sharing_error
base::unique_fd make_memory_file(std::size_t bytes, const share_options& how,
                                 const std::string& what);

}  // namespace cohort::share
