// SPDX-License-Identifier: BSL-1.0
#include "verdict.hpp"

#include "host.hpp"

#include <cstdlib>
#include <set>
#include <sstream>
#include <vector>

namespace faults {

namespace {

/// The values of spawn_error::stage(): for a worker, for either, and for the group.
const std::set<std::string> of_worker{"clone",         "parent death signal",
                                      "process group", "descriptors",
                                      "stdin",         "stdout",
                                      "stderr",        "redirect",
                                      "chdir",         "affinity",
                                      "exec"};
const std::set<std::string> of_either{"memory file", "cgroup"};
const std::set<std::string> of_group{"limit", "memory", "forkserver", "threads"};

bool is_worker(const std::string& index) {
    const int number = std::atoi(index.c_str());
    return number >= 0 && number < workers;
}

std::string wrong_with_spawn_error(const std::vector<std::string>& words) {
    const auto& stage = words[1];
    if (of_worker.contains(stage) && !is_worker(words[2]))
        return "a stage of a worker, and no worker is named";
    if (!of_worker.contains(stage) && !of_either.contains(stage) && !of_group.contains(stage))
        return "a stage that is not documented";
    if (words[3] == "0" || words[4].empty())
        return "an error without a reason";
    // The program is never at fault: it calls worker_main first and preloads nothing.
    for (const auto* const fault_of_program : {"worker_main", "forkserver_preload"})
        if (words[4].find(fault_of_program) != std::string::npos)
            return "an error that blames the program, which is not at fault";
    return {};
}

}  // namespace

std::string wrong_with_first(const std::string& told, const std::string& actor) {
    std::vector<std::string> words;
    std::istringstream text(told);
    for (std::string word; std::getline(text, word, '\t');)
        words.push_back(word);
    words.resize(5);
    std::string wrong;
    if (words[0] == "ok")
        return {};
    if (words[0] == "spawn_error")
        wrong = wrong_with_spawn_error(words);
    else if (words[0] != "failed")
        wrong = "no typed error";
    else if (!is_worker(words[1]) || words[2].empty())
        wrong = "a failed worker that is not named";
    else if (!actor.starts_with("child"))
        wrong = "a worker failed because of a fault elsewhere";
    return wrong.empty() ? wrong : wrong + ": " + told;
}

}  // namespace faults
