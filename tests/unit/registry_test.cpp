// SPDX-License-Identifier: BSL-1.0
// How a worker finds the function that its parent names.
#include "protocol/registry/registry.hpp"

#include <doctest/doctest.h>

#include <span>
#include <vector>

namespace registry_test {

using namespace cohort;
using detail::function_node;

namespace {

detail::function_result invoke(int, std::span<const std::byte>, std::vector<detail::attachment>) {
    return {};
}

/// Two nodes with one name.
struct namesakes {
    const char* name;
    function_node first{&invoke, name};
    function_node second{&invoke, name};
};
const namesakes shared[] = {{"3tagIXadL_Z5trainiEEE"}, {"3tagIXadL_ZN4work5trainEiEEE"}};
const namesakes different[] = {{"3tagIXadL_ZL5trainiEEE"},
                               {"3tagIXadL_ZN4workL5trainEiEEE"},
                               {"3tagIXadL_ZN12_GLOBAL__N_15trainEiEEE"},
                               {"3tagIXtlUliE_EEE"},
                               {"3tagIXtl3$_0EEE"}};

const function_node* found_of(const namesakes& two) {
    CHECK(protocol::named_key_of(two.first) == protocol::named_key_of(two.second));
    return protocol::find(protocol::named_key_of(two.first));
}

}  // namespace

TEST_CASE("registry: a function that the program and a library have compiled is found") {
    for (const auto& two : shared) {
        CAPTURE(two.name);
        CHECK(found_of(two) == &two.second);
    }
}

TEST_CASE("registry: of two functions that have a name in common none is found") {
    for (const auto& two : different) {
        CAPTURE(two.name);
        CHECK(found_of(two) == nullptr);
    }
}

}  // namespace registry_test
