// SPDX-License-Identifier: BSL-1.0
// The value that is being encoded or decoded on a thread. In the library, so that all shared
// objects of a program see the same one.
#include <cohort/detail/encoder.hpp>

namespace cohort::detail::inline v0_1 {

given_up_end::~given_up_end() = default;

encoder*& current_encoder() noexcept {
    thread_local encoder* current = nullptr;
    return current;
}

decoder*& current_decoder() noexcept {
    thread_local decoder* current = nullptr;
    return current;
}

}  // namespace cohort::detail::inline v0_1
