// SPDX-License-Identifier: BSL-1.0
#include "values/demangle.hpp"

#include <cstdlib>
#include <memory>
#include <string_view>

#include <cxxabi.h>

namespace cohort::values {

namespace {

struct free_text {
    void operator()(char* text) const noexcept { std::free(text); }
};

void replace_all(std::string& text, std::string_view from, std::string_view to) {
    for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
        text.replace(at, from.size(), to);
}

}  // namespace

std::string demangle(const char* name) {
    int status = 0;
    const std::unique_ptr<char, free_text> text(
        abi::__cxa_demangle(name, nullptr, nullptr, &status));
    std::string result = status == 0 && text ? text.get() : name;
    replace_all(result,
                "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >",
                "std::string");
    return result;
}

}  // namespace cohort::values
