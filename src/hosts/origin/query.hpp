// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/callback.hpp"
#include "hosts/origin/host_link.hpp"

#include <cohort/detail/border.hpp>
#include <cohort/detail/plan.hpp>

#include <memory>
#include <string>

namespace cohort::multihost {

/// A command that tells something about the hosts, such as `scontrol show hostnames`. Belongs to
/// the engine's thread.
class query final : public detail::completion_sink, public std::enable_shared_from_this<query> {
public:
    struct answer {
        bool success = false;
        std::string printed;
        std::string problem;  // how it has ended, and its last words
    };

    /// @throws what make_group() throws
    query(const origin& from, const detail::program& command);
    ~query() override;

    /// @param then  called once, unless the query is destroyed before
    void start(base::callback<void(answer)> then);
    /// It ends soon; `then` is called then.
    void stop() { detail::request_stop(group_); }

    detail::delivery complete(detail::operation_id id,
                              const detail::completion& result) noexcept override;

private:
    detail::group_ref group_;
    base::callback<void(answer)> then_;
};

}  // namespace cohort::multihost
