// SPDX-License-Identifier: BSL-1.0
// The half of a program that uses standalone Asio.
#include "half.hpp"

#include "guard.hpp"
#include "watchdog.hpp"

#include <string>
#include <typeinfo>

void cohort::test::live_with_standalone_asio() { live(); }

namespace standalone_test {

namespace {

using namespace cohort::test;

const bool registered = set_warm_up(&live_with_standalone_asio);

TEST_CASE("standalone: coroutines and handlers await groups, next to a half with Boost.Asio") {
    const leak_guard guard;
    const watchdog bounded;
    live();
}

TEST_CASE("standalone: the library's names say nothing of the Asio") {
    CHECK(cohort::detail::type_name(typeid(cohort::group)) == "cohort::group");
    CHECK(std::string(typeid(cohort::group).name()) == "N6cohort5groupE");
}

}  // namespace

}  // namespace standalone_test
