// SPDX-License-Identifier: BSL-1.0
#include "hosts/launchers/ssh.hpp"

#include "base/text/text.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <string_view>

namespace cohort::multihost {
namespace {

// The options of OpenSSH, from ssh(1); -P has a value from 9.4 on.
constexpr std::string_view options_with_value = "BDEFIJLRSbceilmopw";
constexpr std::string_view options_without = "46AaCKMTgkqvXxYy";
// With these ssh reads no standard input, ends before the agent, starts no agent, or runs it on a
// pseudo-terminal, which changes bytes.
constexpr std::string_view breaking_options = "GNOQVWfnst";

void refuse_option(char letter) {
    throw std::invalid_argument(fmt::format(
        "cohort: arguments: ssh's option -{} would break the link to the agent", letter));
}

/// Whether the last word is an option whose value is missing.
bool check_options(const std::vector<std::string>& words) {
    bool value_follows = false;
    for (const std::string_view word : words) {
        if (value_follows) {
            value_follows = false;
            continue;
        }
        if (!word.starts_with('-') || word.size() < 2 || word.starts_with("--"))
            throw std::invalid_argument(fmt::format(
                "cohort: arguments: \"{}\" is no option of ssh; hosts are named in ssh()", word));
        for (std::size_t at = 1; at < word.size(); ++at) {
            const char letter = word[at];
            if (breaking_options.find(letter) != word.npos)
                refuse_option(letter);
            if (options_with_value.find(letter) != word.npos) {
                value_follows = at + 1 == word.size();
                break;
            }
            if (options_without.find(letter) == word.npos)
                return false;  // of a later version: nobody knows what follows it
        }
    }
    return value_follows;
}

}  // namespace

void require_ssh_options(const std::vector<std::string>& words) { (void)check_options(words); }

detail::program ssh_command(const detail::ssh_launch& how, const std::string& host,
                            const std::vector<std::string>& agent) {
    if (check_options(how.arguments))
        throw std::invalid_argument(
            fmt::format("cohort: arguments: ssh's option {} has no value", how.arguments.back()));
    // A connection that the user's configuration shares with others, as their master, would end
    // with this command and take the others with it.
    detail::program made{{"ssh", "-T", "-o", "BatchMode=yes", "-o", "ControlMaster=no"}, {}};
    made.argv.insert(made.argv.end(), how.arguments.begin(), how.arguments.end());
    made.argv.push_back(host);
    made.argv.push_back(base::shell_line(agent));
    return made;
}

}  // namespace cohort::multihost
