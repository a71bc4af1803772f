// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <map>
#include <stdexcept>
#include <string>

namespace bench {

/// The words "name=value" of a command line.
class arguments {
public:
    arguments(int argc, char** argv) {
        for (int i = 0; i < argc; ++i) {
            const std::string word = argv[i];
            const auto equals = word.find('=');
            if (equals == std::string::npos)
                throw std::invalid_argument("not name=value: " + word);
            values_[word.substr(0, equals)] = word.substr(equals + 1);
        }
    }

    std::string text(const std::string& name) const {
        const auto found = values_.find(name);
        if (found == values_.end())
            throw std::invalid_argument("missing: " + name + "=");
        return found->second;
    }
    int number(const std::string& name) const { return std::stoi(text(name)); }
    int number(const std::string& name, int otherwise) const {
        return values_.contains(name) ? number(name) : otherwise;
    }

private:
    std::map<std::string, std::string> values_;
};

}  // namespace bench
