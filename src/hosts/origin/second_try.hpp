// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/callback.hpp"
#include "base/sys/patient_containers.hpp"
#include "hosts/origin/host_link.hpp"
#include "hosts/origin/query.hpp"

#include <cohort/detail/launch_plan.hpp>

#include <memory>
#include <optional>

namespace cohort::multihost {

/// The second try for hosts that a launcher has refused because of the job's GPUs: Slurm 22.05 does
/// so where a step asks for none. One command tells which GPUs the job has on every node. Belongs
/// to the engine's thread.
class second_try {
public:
    /// @param command  for the host's launcher; empty: there is none, and `why` stays
    using found = base::callback<void(int host, std::optional<detail::program> command,
                                      const unreached& why)>;

    second_try(const origin& from, const detail::launch_plan& plan, found then)
        : from_(from), plan_(plan), found_(std::move(then)) {}

    /// A host was not reached. @return whether the callback tells later what becomes of it
    bool takes(int host, const unreached& why);
    /// The first launcher of a host that was taken has ended. @return whether it was that one
    bool takes_end(int host) { return ends_.erase(host) > 0; }
    bool is_under_way() const noexcept { return query_ != nullptr; }
    void stop();

private:
    void answered(const query::answer& printed);

    const origin& from_;
    const detail::launch_plan& plan_;
    const found found_;
    base::patient_set<int> tried_;
    base::patient_set<int> ends_;  // whose first launcher has not ended
    base::patient_map<int, unreached> waiting_;
    std::shared_ptr<query> query_;  // while it runs
};

}  // namespace cohort::multihost
