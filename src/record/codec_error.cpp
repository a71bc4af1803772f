// SPDX-License-Identifier: BSL-1.0
#include <cohort/detail/codec_error.hpp>

#include <cstdlib>
#include <memory>
#include <string_view>

#include <cxxabi.h>

namespace cohort {

codec_error::~codec_error() = default;

namespace detail {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
    for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
        text.replace(at, from.size(), to);
    }
}

/// Takes out ", std::allocator<...>" and its like, with whatever stands between the brackets.
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

}  // namespace

std::string type_name(const std::type_info& type) {
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> demangled(
        abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), &std::free);
    std::string name = demangled ? demangled.get() : type.name();
    replace_all(name, "std::__cxx11::", "std::");
    replace_all(name, "std::__1::", "std::");
    replace_all(name, "std::basic_string<char, std::char_traits<char>, std::allocator<char> >",
                "std::string");
    for (const char* start :
         {", std::allocator<", ", std::less<", ", std::hash<", ", std::equal_to<"}) {
        remove_default(name, start);
    }
    replace_all(name, " >", ">");
    return name;
}

}  // namespace detail
}  // namespace cohort
