// SPDX-License-Identifier: BSL-1.0
// The value that is being encoded, decoded or copied on a thread. In the library, so that all
// shared objects of a program see the same one.
#include <cohort/detail/encoder.hpp>
#include <cohort/detail/lendable.hpp>

#include <string>
#include <system_error>

namespace cohort::detail::inline v0_1 {

given_up_end::~given_up_end() = default;

gone_end::gone_end(const std::string& what)
    : sharing_error(std::make_error_code(std::errc::bad_file_descriptor),
                    "cohort: " + (what.empty() ? what : what + ": ") + reason) {}
gone_end::~gone_end() = default;

holding& current_holding() noexcept {
    thread_local holding current = holding::as_copied;
    return current;
}

encoder*& current_encoder() noexcept {
    thread_local encoder* current = nullptr;
    return current;
}

decoder*& current_decoder() noexcept {
    thread_local decoder* current = nullptr;
    return current;
}

}  // namespace cohort::detail::inline v0_1
