// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/command.hpp>
#include <cohort/detail/asio.hpp>
#include <cohort/detail/border.hpp>
#include <cohort/detail/duration.hpp>
#include <cohort/detail/group_handle.hpp>
#include <cohort/detail/group_operations.hpp>
#include <cohort/detail/spawn_operation.hpp>
#include <cohort/outcome.hpp>

#include <exception>
#include <optional>
#include <system_error>
#include <utility>

// The operation of execute(): a group of one command, run to its end.
namespace cohort::detail::inline COHORT_ASIO_VERSION {

/// The group of a command before its start.
/// @param timeout  a duration, or none
template <class... Timeout>
unstarted_group unstarted_execution(command program, Timeout... timeout) {
    return made_or_error<unstarted_group>([&] {
        std::optional<steady_duration> limit;
        ((limit = to_option_duration("execute", timeout)), ...);
        return plan_of_execution(command_access::program(std::move(program)), limit);
    });
}

/// The result of execute: the outcome of the command. Owns the group, so that destroying an
/// unfinished operation stops it.
class execution {
public:
    using type = outcome;

    execution(unstarted_group from, const group_executor&) noexcept
        : from_(std::move(from)), group_(from_.state()) {}

    call begin(const group_executor& where) const { return from_.run(where); }
    std::exception_ptr error(completion& done) {
        // The time was up during the start.
        if (done.what == completion::kind::failed && done.end) {
            if (outcome_in(done))
                return nullptr;
            start_failure late;
            late.code = std::make_error_code(std::errc::timed_out);
            late.text = "the time was up before the command had started";
            late.index = 0;
            late.stage = "exec";
            return failure_of(late);
        }
        return error_of(done);
    }
    outcome value(const completion& done) { return *outcome_in(done); }

private:
    static std::optional<outcome> outcome_in(const completion& done) {
        report all = report_of(done);
        if (all.outcomes.empty())
            return std::nullopt;
        return std::move(all.outcomes.front());
    }

    unstarted_group from_;
    group_handle group_;
};

}  // namespace cohort::detail::inline COHORT_ASIO_VERSION
