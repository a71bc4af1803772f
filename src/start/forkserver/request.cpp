// SPDX-License-Identifier: BSL-1.0
#include "start/forkserver/request.hpp"

namespace cohort::start {

void release(shared_progress& progress, std::uint32_t children) noexcept {
    std::uint32_t before = progress.released;
    while (before < children && !progress.released.compare_exchange_weak(before, children)) {
    }
    if (before < children)
        base::wake(progress.released);
}

}  // namespace cohort::start
