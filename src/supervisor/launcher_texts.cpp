// SPDX-License-Identifier: BSL-1.0
// What the launcher tells a worker by its arguments and its environment.
#include "registry/mark.hpp"
#include "supervisor/launcher.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::supervisor {

namespace {

constexpr std::string_view error_file_variables[] = {"COHORT_ERROR_FILE",
                                                     "TORCHELASTIC_ERROR_FILE"};

}  // namespace

std::span<const std::string_view> launcher::own_variables() noexcept {
    static constexpr std::string_view names[] = {"COHORT_INDEX",      "COHORT_SIZE",
                                                 "LOCAL_RANK",        "LOCAL_WORLD_SIZE",
                                                 "COHORT_ERROR_FILE", "TORCHELASTIC_ERROR_FILE"};
    return names;
}

std::vector<std::string> launcher::variables_of(int index, const start_template& at) const {
    std::vector<std::string> variables{fmt::format("COHORT_INDEX={}", index),
                                       fmt::format("COHORT_SIZE={}", size())};
    // What the user says of these two wins, also that they are to be unset.
    if (!at.where.changes_variable("LOCAL_RANK"))
        variables.push_back(fmt::format("LOCAL_RANK={}", index));
    if (!at.where.changes_variable("LOCAL_WORLD_SIZE"))
        variables.push_back(fmt::format("LOCAL_WORLD_SIZE={}", size()));
    return variables;
}

void launcher::describe_texts(worker_order& into, const start_template& at, int index) const {
    auto& order = into.order;
    auto& own = into.own;
    own.variables = variables_of(index, at);
    own.suffix = fmt::format("/fd/{}", at.record_number);
    if (at.program) {
        own.argv = at.program->argv;
        // The path that holds in the worker and in its children: through the worker's own pid.
        if (plan_.settings.error_file)
            for (auto name : error_file_variables)
                own.variables.push_back(fmt::format("{}=/proc/0000000000{}", name, own.suffix));
    } else {
        own.argv = {program_invocation_name, registry::to_string({at.record_number, into.inode})};
    }
    for (auto& text : own.argv)
        order.argv.push_back(text.data());
    order.argv.push_back(nullptr);
    for (const char* entry : at.environment.entries())
        order.envp.push_back(const_cast<char*>(entry));
    for (auto& entry : own.variables) {
        order.envp.push_back(entry.data());
        if (const auto at_pid = entry.find("/proc/"); at.program && at_pid != entry.npos)
            order.pid_fields.push_back({entry.data() + at_pid + 6, own.suffix.c_str()});
    }
    order.envp.push_back(nullptr);
    for (const auto& path : at.candidates)
        order.candidates.push_back(path.c_str());
}

}  // namespace cohort::supervisor
