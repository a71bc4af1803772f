// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/asio.hpp>
#include <cohort/detail/border.hpp>
#include <cohort/detail/group_handle.hpp>
#include <cohort/detail/group_operations.hpp>
#include <cohort/usage.hpp>

#include <exception>
#include <utility>
#include <vector>

namespace cohort::detail::inline COHORT_ASIO_VERSION {

struct usage_result {
    using type = std::vector<worker_usage>;
    std::exception_ptr error(const completion& done) { return error_of(done); }
    type value(const completion& done) { return done.usage ? *done.usage : type(); }
};

}  // namespace cohort::detail::inline COHORT_ASIO_VERSION

namespace cohort COHORT_ASIO_NAMESPACE {

/// The part of a group that tells what its workers use.
template <class Group>
class group_usage {
public:
    /// Looks at what the live workers use now. A thread of the library reads /proc and the workers'
    /// cgroups, which may take its time: no other operation waits for that.
    /// @return by index; without those that have ended, or end meanwhile
    /// @throws std::system_error  operation_aborted: this call was cancelled; EMFILE, ENFILE,
    ///         ENOMEM: the look takes a descriptor for each live worker, and there is none left.
    /// @cancellation every type: stops waiting only.
    /// @thread_safety safe; any number of looks at once.
    template <completion_token Token = detail::default_token>
    [[nodiscard]] auto usage(Token&& token = Token()) {
        const auto& handle = static_cast<const Group&>(*this).handle_;
        return detail::begin_call<detail::usage_result>(
            handle.on_group("usage", detail::await_usage), std::forward<Token>(token));
    }
    /// The older name of the call with a completion token.
    template <class Token>
    auto async_usage(Token&& token) {
        return usage(std::forward<Token>(token));
    }

private:
    friend Group;
    group_usage() noexcept = default;
};

}  // namespace COHORT_ASIO_NAMESPACE
