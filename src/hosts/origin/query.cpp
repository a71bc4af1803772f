// SPDX-License-Identifier: BSL-1.0
#include "hosts/origin/query.hpp"

#include "base/values/group_end.hpp"
#include "base/values/last_words.hpp"
#include "group/border/create_group.hpp"

#include <cohort/exit_status.hpp>

#include <utility>

#include <unistd.h>

namespace cohort::multihost {
namespace {

/// Of what it prints. Names of ten thousand hosts are shorter.
constexpr std::size_t most_printed = std::size_t{256} << 10;

detail::spawn_plan plan_of_query(const detail::program& command) {
    detail::spawn_plan plan;
    detail::add_program(plan, command);
    plan.settings.error_file = false;
    plan.settings.name = "launcher";
    detail::capture_sink all;
    all.head = most_printed;
    all.tail = 0;
    plan.settings.where.sinks[STDOUT_FILENO] = {all};
    plan.settings.where.sinks[STDERR_FILENO] = {detail::capture_sink()};
    return plan;
}

}  // namespace

query::query(const origin& from, const detail::program& command)
    : group_(detail::make_group(from.services, plan_of_query(command), output::route_names(),
                                from.caller)) {}

query::~query() = default;

void query::start(base::callback<void(answer)> then) {
    then_ = std::move(then);
    detail::run_group(group_, {weak_from_this(), 1, true});
}

detail::delivery query::complete(detail::operation_id, const detail::completion& result) noexcept {
    const auto self = shared_from_this();
    answer found;
    if (result.not_started) {
        found.problem = result.not_started->text + ": " + result.not_started->code.message();
    } else if (!result.end || result.end->workers().empty()) {
        found.problem = "it was stopped";
    } else {
        const auto& ended = *result.end->workers().front();
        found.success = ended.left->status.success() && ended.out.lost() == 0;
        found.printed = std::string_view(ended.out.head);
        found.problem = to_string(ended.left->status);
        if (const auto words = base::last_words(ended.err); !words.empty())
            found.problem += ", " + words;
    }
    if (const auto then = std::exchange(then_, nullptr))
        then(std::move(found));
    return detail::delivery::posted;
}

}  // namespace cohort::multihost
