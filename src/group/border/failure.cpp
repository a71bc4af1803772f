// SPDX-License-Identifier: BSL-1.0
#include "base/values/group_end.hpp"
#include "base/values/quantity.hpp"
#include "group/border/worker_failure.hpp"
#include "group/supervisor/symbolize.hpp"
#include "protocol/record/exception_json.hpp"
#include "protocol/registry/exception.hpp"

#include <cohort/detail/border.hpp>
#include <cohort/errors.hpp>
#include <cohort/host_errors.hpp>
#include <cohort/json.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Only here does the end of a group become an exception. The thread that throws the exception makes
// it; the engine's thread keeps none. The texts begin with exactly the lines that torch writes. An
// exception that was written as JSON becomes an exception again here, too.
namespace cohort::detail::inline v0_1 {

/// Also holds the worker's exception, so that std::rethrow_if_nested throws it in its own type.
class raised_with_cause final : public process_raised_exception, public std::nested_exception {
public:
    /// Must be called while the worker's exception is handled: std::nested_exception captures that.
    explicit raised_with_cause(const process_raised_exception& raised)
        : process_raised_exception(raised) {}
};

namespace {

std::string with_note(std::string text, const outcome& worker) {
    if (!worker.note().empty())
        text += "\n" + worker.note();
    return text;
}

std::string with_crash(std::string text, const outcome& worker) {
    if (worker.crash)
        text += "\n" + worker.crash->trace;
    return text;
}

/// The end of the text of an exception.
std::string with_last_words(std::string text, const std::string& last_words) {
    if (!last_words.empty())
        text += "\n\n-- its last words on stderr:\n" + last_words;
    return text;
}

/// @param cause  the worker's exception in its own type; null: it is not known
std::exception_ptr nesting(const process_raised_exception& raised, std::exception_ptr cause) {
    if (!cause)
        return std::make_exception_ptr(raised);
    try {
        std::rethrow_exception(cause);
    } catch (...) {
        return std::make_exception_ptr(raised_with_cause(raised));
    }
}

std::exception_ptr with_cause(const process_raised_exception& raised) {
    // Not for commands: the type that a command names need not be a type of this program.
    const auto is_of_function = [&](const outcome& one) {
        return one.index == raised.error_index() && !outcome_access::is_command(one);
    };
    const bool is_known = std::ranges::any_of(raised.outcomes(), is_of_function);
    return nesting(raised, is_known ? protocol::restored(raised.error()) : nullptr);
}

/// Whether a worker had not ended at the time limit of its group.
bool has_timed_out(const group_end& end) {
    return end.not_started > 0 || std::ranges::any_of(end.workers(), [](const auto& worker) {
               return !worker->left->success();
           });
}

/// Whether a worker was stopped because of a limit, so that this is its failure.
bool was_cut_short(const outcome& worker) {
    return worker.cause == cause::timed_out || worker.cause == cause::output_limit;
}

/// Its index, and its host if that is another one.
std::string name_of(const outcome& worker) {
    return worker.host.empty() ? std::to_string(worker.index)
                               : fmt::format("{} ({})", worker.index, worker.host);
}

std::string text_of_error(const outcome& worker) {
    return fmt::format("\n\n-- Process {} terminated with the following error:\n{}",
                       name_of(worker), worker.error->trace);
}

/// @param who  "process" in groups, as torch says, and "worker" in pools
std::string text_of_exit(const outcome& worker, const char* who = "process") {
    const auto& status = worker.status;
    if (worker.cause == cause::not_started)
        return fmt::format("{} {} could not be started", who, name_of(worker));
    if (status.signaled())
        return fmt::format("{} {} terminated with signal {}", who, name_of(worker),
                           status.signal_name());
    if (status.exited())
        return fmt::format("{} {} terminated with exit code {}", who, name_of(worker),
                           status.exit_code());
    return fmt::format("{} {} terminated with an unknown exit status", who, name_of(worker));
}

/// The indices of the workers that were lost with this host.
std::vector<int> lost_with(const std::string& host, const std::vector<outcome>& all) {
    std::vector<int> lost;
    for (const auto& one : all)
        if (one.cause == cause::host_lost && one.host == host)
            lost.push_back(one.index);
    return lost;
}

/// @param first  the first failure; the host is lost for the reason that its note has
std::exception_ptr loss_of_host(const outcome& first,
                                const process_exception::outcome_list& outcomes) {
    const auto lost = lost_with(first.host, *outcomes);
    const auto found = std::ranges::find(*outcomes, lost.front(), &outcome::index);
    const auto& why = first.note();
    return std::make_exception_ptr(
        host_lost(fmt::format("host {} was lost{}{} ({})", first.host, why.empty() ? "" : ": ", why,
                              base::workers_text(lost)),
                  found->index, found->pid, outcomes, first.host));
}

}  // namespace

std::optional<outcome> outcome_of(const std::shared_ptr<const ended_worker>& worker) {
    return worker ? std::make_optional(worker->whole()) : std::nullopt;
}

report report_of(const completion& done) { return done.end ? done.end->report() : report(); }

std::exception_ptr failure_of(const std::shared_ptr<const group_end>& end) {
    // The exceptions share the outcomes of the group.
    const process_exception::outcome_list outcomes(end, &end->report().outcomes);
    if (end->first_failure < 0 && end->reached_limit && has_timed_out(*end))
        return std::make_exception_ptr(
            group_timed_out(std::shared_ptr<const report>(end, &end->report())));
    if (end->first_failure < 0)
        return end->stopped ? std::make_exception_ptr(group_stopped(outcomes)) : nullptr;
    const auto& worker = (*outcomes)[static_cast<std::size_t>(end->first_failure)];
    if (worker.cause == cause::host_lost)
        return loss_of_host(worker, outcomes);
    if (worker.error && !was_cut_short(worker))
        return with_cause(process_raised_exception(
            with_last_words(with_note(text_of_error(worker), worker), end->stderr_tail),
            worker.index, worker.pid, outcomes, *worker.error));
    return std::make_exception_ptr(process_exited_exception(
        with_last_words(with_crash(with_note(text_of_exit(worker), worker), worker),
                        end->stderr_tail),
        worker.index, worker.pid, outcomes, worker.status));
}

std::exception_ptr failure_of_worker(const group_end& end, int slot, const std::string& note) {
    outcome worker = end.report().outcomes.at(0);
    worker.index = slot;
    add_note(outcome_access::note(worker), note);
    const auto outcomes = std::make_shared<const std::vector<outcome>>(1, worker);
    if (worker.error && !was_cut_short(worker))
        return with_cause(process_raised_exception(
            with_last_words(with_note(text_of_error(worker), worker), worker.last_words()), slot,
            worker.pid, outcomes, *worker.error));
    return std::make_exception_ptr(process_exited_exception(
        with_last_words(with_crash(with_note(text_of_exit(worker, "worker"), worker), worker),
                        worker.last_words()),
        slot, worker.pid, outcomes, worker.status));
}

std::exception_ptr failure_of_task(const outcome& told, int slot) {
    const process_raised_exception raised(
        fmt::format("task failed in worker {}:\n{}", slot, told.error->trace), slot, told.pid,
        nullptr, *told.error);
    return nesting(raised, protocol::restored(raised.error()));
}

std::shared_ptr<const outcome> with_names(loop::runtime& runtime,
                                          const std::shared_ptr<const outcome>& told) noexcept {
    auto& names = groups::services::of(runtime).names();
    return groups::symbolized(told, groups::needs_symbols(*told) ? &names : nullptr);
}

std::exception_ptr failure_of(const start_failure& start) {
    return std::make_exception_ptr(spawn_error(start.code, start.text, start.index, start.stage));
}

}  // namespace cohort::detail::inline v0_1

std::exception_ptr cohort::exception_from_json(std::string_view json) {
    return protocol::exception_in(json, &detail::with_cause);
}
