// SPDX-License-Identifier: BSL-1.0
// Part of a program of cases: their groups run on two hosts, which are commands of this machine.
// What can't leave its machine stays here. This takes the place of the library's create_group().
#include <cohort/cohort.hpp>
#include <cohort/detail/border.hpp>

#include <asio/io_context.hpp>
#include <asio/use_future.hpp>

#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <unistd.h>

namespace {

using cohort::detail::group_ref;
using cohort::detail::spawn_plan;

/// Workers and forked copies of this process have groups of their own, which stay.
const bool is_worker = std::getenv("COHORT_INDEX") != nullptr;
const pid_t own_pid = ::getpid();

cohort::command nearby(const std::string&, const std::vector<std::string>& agent) {
    return cohort::command("env").args(agent);
}

cohort::hosts reach_two() {
    asio::io_context context;
    auto reached = cohort::async_reach(context, cohort::launcher(&nearby).hosts("alpha", "beta"),
                                       asio::use_future);
    context.run();
    return reached.get();
}

/// The library's, which this program's hides.
group_ref create_here(spawn_plan plan) {
    using function = group_ref(spawn_plan);
    static auto* const hidden = [] {
        Dl_info own{};
        ::dladdr(reinterpret_cast<void*>(&cohort::detail::create_group), &own);
        return reinterpret_cast<function*>(::dlsym(RTLD_NEXT, own.dli_sname));
    }();
    return hidden(std::move(plan));
}

/// Such a group makes what stays in this process, before a case counts what there is.
bool is_warm_up(const spawn_plan& plan) { return plan.settings.name == "warm-up"; }

bool stays(const std::exception& refused) {
    return std::string_view(refused.what()).find("does not leave its machine") !=
           std::string_view::npos;
}

}  // namespace

cohort::detail::group_ref cohort::detail::create_group(spawn_plan plan) {
    if (is_worker || ::getpid() != own_pid || plan.settings.machines || plan.settings.nprocs == 0 ||
        is_warm_up(plan))
        return create_here(std::move(plan));
    auto there = plan;
    there.settings.machines = reach_two().place();  // the group keeps them
    try {
        return create_here(std::move(there));
    } catch (const std::exception& refused) {
        if (!stays(refused))
            throw;
    }
    return create_here(std::move(plan));
}
