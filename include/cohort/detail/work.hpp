// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/closure.hpp>
#include <cohort/command.hpp>
#include <cohort/detail/plan.hpp>
#include <cohort/function.hpp>
#include <cohort/options.hpp>

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

// Turns a work and its options into the plan that the library takes.
namespace cohort::detail::inline v0_1 {

inline void fill_plan(spawn_plan& plan, const command& work) {
    add_program(plan, command_access::program(work));
}

template <class Make>
void fill_plan(spawn_plan& plan, const command_for_work<Make>& work) {
    for (int index = 0; index < plan.settings.nprocs; ++index)
        fill_plan(plan, work(index));
}

template <class Callable>
void fill_plan(spawn_plan& plan, closure_work<Callable> work) {
    using result = std::invoke_result_t<Callable&, int>;
    check_result<result>();
    require_fork(plan.settings);
    plan.results_carry = result_may_carry<result>;
    plan.work = "closure";
    kept_handles kept = work.kept();
    plan.attachments = std::move(kept.encoded.attachments);
    // The copies find the ends of queues by the handles, which this process holds until the start.
    plan.call = [kept = std::move(kept.encoded.cbor), handles = std::move(kept.handles),
                 restore = work.restore(),
                 call = work.callable()](int index, std::vector<attachment> attachments) {
        if (restore != nullptr)
            restore(kept, std::move(attachments));
        return encoded_result<result>([&] { return outermost_call(*call, index); });
    };
}

template <auto Fn>
void fill_plan(spawn_plan& plan, function_work<Fn> work) {
    plan.settings.method = method_for_functions(plan.settings);
    plan.results_carry = result_may_carry<typename function_work<Fn>::result>;
    plan.work = function_name(typeid(function_tag<Fn>));
    if (plan.settings.method == start_method::fork) {
        return work.fill_call(plan);
    }
    spawn_plan made = work.plan();
    plan.function = made.function;
    plan.arguments = std::move(made.arguments);
    plan.attachments = std::move(made.attachments);
}

template <class Work>
concept startable = requires(spawn_plan& plan, Work work) { fill_plan(plan, std::move(work)); };

/// The plan that runs `work` with the options `how`. Made on the caller's thread, in the initiating
/// call.
/// @throws spawn_error  a closure with another start method than fork
/// @throws codec_error, sharing_error
/// @throws whatever the caller's own code throws (command_for, to_json)
template <class Work>
spawn_plan make_plan(Work work, options how) {
    static_assert(startable<Work>, "cohort: the work must be function<Fn>(...), command(...), "
                                   "command_for(...) or closure(...)");
    spawn_plan plan;
    plan.settings = options_access::settings(std::move(how));
    plan.settings.settle_size();
    if constexpr (startable<Work>)
        fill_plan(plan, std::move(work));
    place_workers(plan);
    hold_lent(plan);
    return plan;
}

}  // namespace cohort::detail::inline v0_1
