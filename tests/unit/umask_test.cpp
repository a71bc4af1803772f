// SPDX-License-Identifier: BSL-1.0
#include <cohort/command.hpp>
#include <cohort/options.hpp>

#include <doctest/doctest.h>

#include <stdexcept>

namespace umask_test {

using cohort::options;
using cohort::detail::command_access;
using cohort::detail::options_access;

TEST_CASE("umask: it takes the nine permission bits and nothing else") {
    CHECK(options_access::settings(options().umask(0777)).where.umask == mode_t{0777});
    CHECK_FALSE(options_access::settings(options()).where.umask);
    CHECK_THROWS_WITH_AS(options().umask(01000), "cohort: umask: 01000 has bits outside 0777",
                         std::invalid_argument);
}

TEST_CASE("umask: a command's stands over that of the options") {
    const auto where = options_access::settings(options().umask(1)).where;
    const auto of_command = command_access::program(cohort::command("true").umask(2)).where;
    CHECK(where.overridden_by(of_command).umask == mode_t{2});
    CHECK(where.overridden_by({}).umask == mode_t{1});
}

}  // namespace umask_test
