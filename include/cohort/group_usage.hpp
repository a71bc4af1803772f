// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/asio.hpp>
#include <cohort/detail/border.hpp>
#include <cohort/detail/group_operations.hpp>
#include <cohort/detail/operation.hpp>
#include <cohort/usage.hpp>

#include <exception>
#include <utility>
#include <vector>

namespace cohort::detail::inline COHORT_ASIO_VERSION {

/// A look at what workers use, as a job of an operation.
class usage_job {
public:
    usage_job(group_ref group, const char* call) noexcept : group_(std::move(group)), call_(call) {}

    void send(receiver to) const {
        if (!group_)
            throw_empty_group(call_);
        await_usage(group_, std::move(to));
    }
    canceller cancelled_by(operation_id id) const noexcept { return {group_, id}; }

private:
    group_ref group_;
    const char* call_;
};

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
    [[nodiscard]] asio::awaitable<std::vector<worker_usage>> usage() {
        return detail::await_result<detail::usage_result>(look("usage"));
    }
    /// usage() with a completion token: void(std::exception_ptr, std::vector<worker_usage>).
    template <class Token>
    auto async_usage(Token&& token) {
        return detail::async_result_of<detail::usage_result>(look("async_usage"),
                                                             std::forward<Token>(token));
    }

private:
    friend Group;
    group_usage() noexcept = default;

    auto look(const char* call) const {
        const auto& handle = static_cast<const Group&>(*this).handle_;
        return handle.on_executor(detail::usage_job(handle.get(), call));
    }
};

}  // namespace cohort COHORT_ASIO_NAMESPACE
