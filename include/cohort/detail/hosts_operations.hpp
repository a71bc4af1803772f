// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/asio.hpp>
#include <cohort/detail/executors.hpp>
#include <cohort/detail/group_operations.hpp>
#include <cohort/detail/hosts_border.hpp>
#include <cohort/detail/operation.hpp>
#include <cohort/detail/starts.hpp>

#include <exception>
#include <memory>
#include <utility>

// The operations on hosts. They stand between reach and the border.
namespace cohort::detail::inline COHORT_ASIO_VERSION {

inline void cancel_call_in_hosts(const std::weak_ptr<void>& hosts, operation_id id,
                                 cancellation_type) noexcept {
    cancel_in_hosts(std::static_pointer_cast<hosts_state>(hosts.lock()), id);
}

/// Reaches hosts, or leaves them.
inline call about_hosts(hosts_ref hosts, void (*begin)(const hosts_ref&, receiver),
                        group_executor where) {
    return call_about(std::move(hosts), "leave", throw_empty_hosts, cancel_call_in_hosts, begin,
                      std::move(where));
}

/// Hosts before they are reached.
struct unreached_hosts {
    explicit unreached_hosts(const launch_settings& how) : state(create_hosts(how)) {}
    explicit unreached_hosts(std::exception_ptr why) noexcept : error(std::move(why)) {}

    hosts_ref state;
    std::exception_ptr error;
};

inline unreached_hosts unreached_of(const launch_settings& how) {
    return made_or_error<unreached_hosts>([&]() -> const launch_settings& { return how; });
}

/// The result of reach. Owns the hosts from the initiation on, so that destroying an unfinished
/// operation lets them go.
template <class Hosts>
class reached_hosts {
public:
    using type = Hosts;

    reached_hosts(unreached_hosts from, const group_executor& where)
        : error_(std::move(from.error)),
          owner_(from.state ? std::make_shared<const hosts_owner>(from.state) : nullptr),
          executor_(where.executor()) {}

    call begin(const group_executor& where) const {
        return error_ ? call(error_, where) : about_hosts(owner_->state(), reach_hosts, where);
    }
    std::exception_ptr error(const completion& done) {
        auto error = error_of(done);
        if (error)
            owner_.reset();
        return error;
    }
    Hosts value(completion&) { return Hosts(std::move(owner_), std::move(executor_)); }

private:
    std::exception_ptr error_;
    std::shared_ptr<const hosts_owner> owner_;
    asio::any_io_executor executor_;
};

}  // namespace cohort::detail::inline COHORT_ASIO_VERSION
