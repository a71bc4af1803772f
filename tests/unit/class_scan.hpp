// SPDX-License-Identifier: BSL-1.0
// The data members of classes, found in the text. It knows this project's style and no more: no
// members that are pointers to functions, no macros that expand to members.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <regex>
#include <string>
#include <utility>
#include <vector>

namespace cohort::test {

struct class_size {
    std::string name;
    std::size_t members = 0;
};

/// Blanks comments, what is in quotes, and preprocessor lines.
inline std::string bare_code(const std::vector<std::string>& lines) {
    static const std::regex quoted(R"re("([^"\\]|\\.)*"|'([^'\\]|\\.)'|\bR"\(.*\)")re");
    std::string code;
    for (const auto& line : lines) {
        const auto begins = line.find_first_not_of(' ');
        if (begins == std::string::npos || line[begins] == '#')
            continue;
        auto text = line;
        if (text.find_first_of("\"'") != std::string::npos)
            text = std::regex_replace(text, quoted, "0");
        code += text.substr(0, text.find("//")) + '\n';
    }
    return code;
}

class class_scan {
public:
    /// The classes of a file that have a body there, those within others as well.
    static std::vector<class_size> of(const std::vector<std::string>& lines) {
        class_scan scan;
        for (const char c : bare_code(lines))
            scan.read(c);
        return std::move(scan.found_);
    }

private:
    struct scope {
        class_size body;     // no name: it is no class
        std::string before;  // what stands before the brace
    };

    void read(char c) {
        if (c == '{') {
            open_.push_back({{class_name(statement_)}, std::move(statement_)});
            statement_.clear();
        } else if (c == '}' && !open_.empty()) {
            close();
        } else if (c == ';') {
            if (!open_.empty() && !open_.back().body.name.empty())
                open_.back().body.members += members_in(statement_);
            statement_.clear();
        } else {
            statement_ += std::isspace(static_cast<unsigned char>(c)) ? ' ' : c;
        }
    }

    void close() {
        auto closed = std::move(open_.back());
        open_.pop_back();
        statement_.clear();
        if (!closed.body.name.empty())
            found_.push_back(std::move(closed.body));
        else if (!ends_with_brace(closed.before))
            statement_ = std::move(closed.before);  // a member's initializer
    }

    /// Without arguments of templates and calls, attributes and access specifiers.
    static std::string plain(std::string text) {
        static const std::regex noise(R"re(<=>|\b(public|private|protected)\s*:(?!:)|)re"
                                      R"re(\[\[[^\]]*\]\]|\balignas\([^()]*\))re");
        static const std::regex angles(R"re(<[^<>]*>)re");
        text = std::regex_replace(text, noise, " ");
        for (std::string before; before != text;)
            text = std::regex_replace(before = text, angles, " ");
        return text;
    }

    static std::string class_name(const std::string& before) {
        static const std::regex head(
            R"re(\b(class|struct|union)\s+(?:[A-Z_]+\s+)?((?:\w+::)*\w+)\s*(final\s*)?(:[^:].*)?$)re");
        const auto text = plain(before);
        std::smatch match;
        const bool is_class = text.find("enum") == std::string::npos &&
                              text.find('(') == std::string::npos &&
                              std::regex_search(text, match, head);
        return is_class ? match[2].str() : std::string();
    }

    /// Whether a body follows, of a function, a namespace, or an enum, and not an initializer.
    static bool ends_with_brace(const std::string& before) {
        static const std::regex other(R"re(^\s*(,|namespace\b|extern\b)|\boperator\b)re");
        const auto text = plain(before);
        if (std::regex_search(text, other))
            return true;
        const bool is_argument = std::ranges::count(text, '(') > std::ranges::count(text, ')');
        return !is_argument && text.substr(0, text.find('=')).find('(') != std::string::npos;
    }

    static std::size_t members_in(const std::string& statement) {
        static const std::regex none(
            R"re(^\s*(using|friend|typedef|enum|class|struct|union|template)\b|\b(static|operator)\b)re");
        static const std::regex called(R"re(\([^()]*\))re");
        auto text = plain(statement);
        if (text.find_first_not_of(' ') == std::string::npos || std::regex_search(text, none))
            return 0;
        if (text.substr(0, text.find('=')).find('(') != std::string::npos)
            return 0;  // a function
        for (std::string before; before != text;)
            text = std::regex_replace(before = text, called, " ");
        return 1 + static_cast<std::size_t>(std::ranges::count(text, ','));
    }

    std::string statement_;
    std::vector<scope> open_;
    std::vector<class_size> found_;
};

}  // namespace cohort::test
