// SPDX-License-Identifier: BSL-1.0
#include "base/values/demangle.hpp"

#include <cohort/detail/type_name.hpp>

#include <cstdlib>
#include <memory>
#include <string_view>
#include <typeinfo>
#include <vector>

#include <cxxabi.h>

namespace cohort::base {

namespace {

struct free_text {
    void operator()(char* text) const noexcept { std::free(text); }
};

void replace_all(std::string& text, std::string_view from, std::string_view to) {
    for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
        text.replace(at, from.size(), to);
    }
}

/// Removes each default argument that begins with `start`, such as ", std::allocator<", up to the
/// matching bracket.
void remove_default(std::string& text, std::string_view start) {
    for (auto at = text.find(start); at != std::string::npos; at = text.find(start, at)) {
        std::size_t end = at + start.size();
        for (int open = 1; open > 0 && end < text.size(); ++end) {
            if (text[end] == '<')
                ++open;
            else if (text[end] == '>')
                --open;
        }
        text.erase(at, end - at);
    }
}

template <class... Types>
bool is_one_of(std::string_view name) noexcept {
    return ((name == typeid(Types).name() || name == typeid(std::vector<Types>).name()) || ...);
}

bool is_common(std::string_view name) noexcept {
    return is_one_of<bool, char, signed char, unsigned char, short, unsigned short, int, unsigned,
                     long, unsigned long, long long, unsigned long long, float, double, long double,
                     std::string>(name);
}

}  // namespace

std::string demangle(const char* name) {
    int status = 0;
    const std::unique_ptr<char, free_text> text(
        abi::__cxa_demangle(name, nullptr, nullptr, &status));
    std::string result = status == 0 && text ? text.get() : name;
    replace_all(result, "std::__cxx11::", "std::");
    replace_all(result, "std::__1::", "std::");
    replace_all(result, "cohort::detail::v0_1::", "cohort::detail::");
    replace_all(result, "cohort::detail::v0_1_boost_asio::", "cohort::detail::");
    replace_all(result, "cohort::boost_asio::", "cohort::");
    replace_all(result, "std::basic_string<char, std::char_traits<char>, std::allocator<char> >",
                "std::string");
    for (const char* start :
         {", std::allocator<", ", std::less<", ", std::hash<", ", std::equal_to<"}) {
        remove_default(result, start);
    }
    replace_all(result, " >", ">");
    return result;
}

std::string demangle_foreign(std::string_view name) {
    if (is_common(name))
        return demangle(std::string(name).c_str());
    constexpr std::size_t most = 256;
    std::string quoted = "the type \"";
    for (const char c : name.substr(0, most))
        quoted += c > ' ' && c <= '~' ? c : '?';
    return quoted + (name.size() > most ? "...\"" : "\"");
}

}  // namespace cohort::base

std::string cohort::detail::type_name(const std::type_info& type) {
    return base::demangle(type.name());
}
