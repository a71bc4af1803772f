// SPDX-License-Identifier: BSL-1.0
#include "result_check.hpp"

#include "host.hpp"

#include <cstdlib>
#include <set>
#include <sstream>
#include <vector>

namespace faults {

namespace {

/// The values of spawn_error::stage(): for a worker, for either, and for the group.
const std::set<std::string> worker_stages{"clone",         "parent death signal",
                                          "process group", "descriptors",
                                          "stdin",         "stdout",
                                          "stderr",        "redirect",
                                          "chdir",         "affinity",
                                          "exec",          "no_new_privileges"};
const std::set<std::string> either_stages{"memory file", "cgroup", "pipe"};
const std::set<std::string> group_stages{"limit",      "memory",  "socket",
                                         "forkserver", "threads", "confinement"};

bool is_worker(const std::string& index) {
    const int number = std::atoi(index.c_str());
    return number >= 0 && number < workers;
}

std::string check_spawn_error(const std::vector<std::string>& fields) {
    const auto& stage = fields[1];
    if (worker_stages.contains(stage) && !is_worker(fields[2]))
        return "a stage of a worker, and no worker is named";
    if (!worker_stages.contains(stage) && !either_stages.contains(stage) &&
        !group_stages.contains(stage))
        return "a stage that is not documented";
    if (fields[3] == "0" || fields[4].empty())
        return "an error without a reason";
    // The program is never at fault: it calls worker_main first and preloads nothing.
    for (const auto* const fault_of_program : {"worker_main", "forkserver_preload"})
        if (fields[4].find(fault_of_program) != std::string::npos)
            return "an error that blames the program, which is not at fault";
    return {};
}

}  // namespace

std::string check_first_result(const std::string& result, const std::string& actor) {
    std::vector<std::string> fields;
    std::istringstream text(result);
    for (std::string field; std::getline(text, field, '\t');)
        fields.push_back(field);
    fields.resize(5);
    std::string wrong;
    if (fields[0] == "ok")
        return {};
    if (fields[0] == "spawn_error")
        wrong = check_spawn_error(fields);
    else if (fields[0] != "failed")
        wrong = "no typed error";
    else if (!is_worker(fields[1]) || fields[2].empty())
        wrong = "a failed worker that is not named";
    else if (!actor.starts_with("child"))
        wrong = "a worker failed because of a fault elsewhere";
    return wrong.empty() ? wrong : wrong + ": " + result;
}

}  // namespace faults
