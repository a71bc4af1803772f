// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/asio.hpp>
#include <cohort/detail/executors.hpp>
#include <cohort/detail/group_operations.hpp>
#include <cohort/detail/hosts_border.hpp>
#include <cohort/detail/operation.hpp>

#include <exception>
#include <memory>
#include <utility>

// The operations on hosts. They stand between reach and the border.
namespace cohort::detail::inline COHORT_ASIO_VERSION {

/// The handler in the cancellation slot of an operation on hosts.
class hosts_canceller {
public:
    hosts_canceller(const hosts_ref& hosts, operation_id id) noexcept : hosts_(hosts), id_(id) {}
    void operator()(cancellation_type type) const noexcept {
        if (type != cancellation_type::none)
            cancel_in_hosts(hosts_, id_);
    }

private:
    std::weak_ptr<hosts_state> hosts_;
    operation_id id_;
};

/// Reaches hosts, or leaves them, as a job of an operation.
class hosts_job {
public:
    enum class kind { reach, leave };

    /// @param why  set: the operation fails with that
    hosts_job(kind what, hosts_ref hosts, std::exception_ptr why = nullptr)
        : what_(what), hosts_(std::move(hosts)), error_(std::move(why)) {}

    void send(const receiver& to) const {
        if (error_)
            std::rethrow_exception(error_);
        if (!hosts_)
            throw_empty_hosts("leave");
        if (what_ == kind::reach)
            reach_hosts(hosts_, to);
        else
            leave_hosts(hosts_, to);
    }
    hosts_canceller cancelled_by(operation_id id) const noexcept { return {hosts_, id}; }

private:
    kind what_;
    hosts_ref hosts_;
    std::exception_ptr error_;
};

/// Hosts before they are reached.
struct unreached_hosts {
    explicit unreached_hosts(const launch_settings& how) : state(create_hosts(how)) {}
    explicit unreached_hosts(std::exception_ptr why) noexcept : error(std::move(why)) {}

    hosts_ref state;
    std::exception_ptr error;
};

inline unreached_hosts unreached_or_error(const launch_settings& how) {
    try {
        return unreached_hosts(how);
    } catch (...) {
        return unreached_hosts(std::current_exception());
    }
}

/// The result of reach. Owns the hosts from the initiation on, so that destroying an unfinished
/// operation lets them go.
template <class Hosts>
class reached_hosts {
public:
    using type = Hosts;

    reached_hosts(const unreached_hosts& from, const group_executor& where)
        : owner_(from.state ? std::make_shared<const hosts_owner>(from.state) : nullptr),
          executor_(where.executor()) {}

    std::exception_ptr error(const completion& done) {
        auto error = error_of(done);
        if (error)
            owner_.reset();
        return error;
    }
    Hosts value(completion&) { return Hosts(std::move(owner_), std::move(executor_)); }

private:
    std::shared_ptr<const hosts_owner> owner_;
    asio::any_io_executor executor_;
};

/// The result of leave.
struct left_hosts {
    std::exception_ptr error(const completion& done) { return error_of(done); }
};

template <class Hosts>
asio::awaitable<Hosts> await_reach_of(unreached_hosts from) {
    const group_executor where(asio::any_io_executor(co_await asio::this_coro::executor));
    job_on<hosts_job> on(hosts_job(hosts_job::kind::reach, from.state, from.error), where);
    reached_hosts<Hosts> result(from, where);
    completion done = co_await await_completion(std::move(on));
    if (auto error = result.error(done))
        std::rethrow_exception(std::move(error));
    co_return result.value(done);
}

template <class Hosts, class Token>
auto async_reach_of(const unreached_hosts& from, Token&& token, asio::any_io_executor executor) {
    const group_executor where(std::move(executor));
    return async_result_of(
        job_on<hosts_job>(hosts_job(hosts_job::kind::reach, from.state, from.error), where),
        std::forward<Token>(token), reached_hosts<Hosts>(from, where));
}

}  // namespace cohort::detail::inline COHORT_ASIO_VERSION
