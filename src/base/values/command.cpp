// SPDX-License-Identifier: BSL-1.0
#include <cohort/command.hpp>

#include <cstddef>
#include <stdexcept>
#include <utility>

namespace cohort {

command::command(const std::vector<std::string>& words) {
    if (words.empty())
        throw std::invalid_argument("cohort: a command of no words");
    set_program(words.front());
    for (std::size_t i = 1; i < words.size(); ++i)
        add(words[i]);
}

void command::set_program(std::string name) {
    if (name.empty())
        throw std::invalid_argument("cohort: the program of a command has an empty name");
    detail::require_no_nul(name, "the program of a command");
    program_.argv.assign(1, std::move(name));
}

void command::add(std::string text) {
    detail::require_no_nul(text, "an argument of a command");
    program_.argv.push_back(std::move(text));
}

}  // namespace cohort
