// SPDX-License-Identifier: BSL-1.0
// How the CPUs of a caller are dealt out to its workers.
#include "protocol/order/caller.hpp"

#include <cohort/options.hpp>

#include <doctest/doctest.h>

#include <set>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace cpu_parts_test {

using namespace cohort;
using protocol::core;

namespace {

using list = std::vector<int>;
using parts = std::vector<list>;

parts all_parts(const std::vector<core>& cores, int count) {
    parts found;
    for (int index = 0; index < count; ++index)
        found.push_back(protocol::cpu_part(cores, count, index));
    return found;
}

list listed(std::string_view text) {
    return detail::options_access::settings(options().cpus(text)).where.limits.cpus->list;
}

}  // namespace

TEST_CASE("cpu parts: whole cores first, then CPUs of a core, then the same CPU") {
    const std::vector<core> two_by_two{{0, 4}, {1, 5}};
    const std::vector<core> four{{0}, {1}, {2}, {3}};
    const struct {
        std::vector<core> cores;
        int count;
        parts wanted;
    } table[] = {
        {{{7}}, 1, {{7}}},
        {{{7}}, 3, {{7}, {7}, {7}}},
        {four, 1, {{0, 1, 2, 3}}},
        {four, 2, {{0, 1}, {2, 3}}},
        {four, 3, {{0}, {1}, {2, 3}}},
        {four, 4, {{0}, {1}, {2}, {3}}},
        {four, 6, {{0}, {0}, {1}, {2}, {2}, {3}}},
        {two_by_two, 1, {{0, 4, 1, 5}}},
        {two_by_two, 2, {{0, 4}, {1, 5}}},
        {two_by_two, 3, {{0}, {4}, {1, 5}}},
        {two_by_two, 4, {{0}, {4}, {1}, {5}}},
        {two_by_two, 6, {{0}, {0}, {4}, {1}, {1}, {5}}},
        {{{0, 1, 2, 3}}, 2, {{0, 1}, {2, 3}}},
        {{{0, 1, 2}}, 2, {{0}, {1, 2}}},
    };
    for (const auto& row : table) {
        CAPTURE(row.cores.size());
        CAPTURE(row.count);
        CHECK(all_parts(row.cores, row.count) == row.wanted);
    }
}

TEST_CASE("cpu parts: no part is empty, and together they are all CPUs") {
    for (int cores = 1; cores <= 12; ++cores)
        for (int threads = 1; threads <= 4; ++threads)
            for (int count = 1; count <= 60; ++count) {
                std::vector<core> all;
                for (int c = 0; c < cores; ++c) {
                    all.emplace_back();
                    for (int t = 0; t < threads; ++t)
                        all.back().push_back(t * cores + c);
                }
                std::multiset<int> given;
                for (const auto& part : all_parts(all, count)) {
                    REQUIRE_FALSE(part.empty());
                    given.insert(part.begin(), part.end());
                }
                const std::set<int> different(given.begin(), given.end());
                const auto cpus = static_cast<std::size_t>(cores * threads);
                CHECK(different.size() == cpus);
                if (static_cast<std::size_t>(count) <= cpus)
                    CHECK(given.size() == cpus);
            }
}

TEST_CASE("cpu parts: a mask holds its CPUs, however high their numbers are") {
    for (const list& cpus : {list{0}, list{3, 1023}, list{0, 1024, 5000}})
        CHECK(protocol::cpus_in(protocol::mask_of(cpus)) == cpus);
}

TEST_CASE("cpu parts: the cores of this machine are its CPUs, each once") {
    const auto own = protocol::cpus_in(protocol::own_cpus());
    REQUIRE_FALSE(own.empty());
    std::multiset<int> found;
    for (const auto& core : protocol::cores_of(own))
        found.insert(core.begin(), core.end());
    CHECK(found == std::multiset<int>(own.begin(), own.end()));
}

TEST_CASE("cpu parts: a list has numbers and ranges, in any order") {
    CHECK(listed("0") == list{0});
    CHECK(listed("0-3,8") == list{0, 1, 2, 3, 8});
    CHECK(listed("8,2-3,3,0") == list{0, 2, 3, 8});
    for (const auto* bad : {"", ",", "1,", "-1", "1-", "3-1", "a", "1 2", "0-3x", "65536",
                            "99999999999", "0-65535,0-65535"})
        CHECK_THROWS_AS(options().cpus(bad), std::invalid_argument);
    CHECK_THROWS_WITH_AS(options().cpus("1;2"),
                         "cohort: cpus: \"1;2\" is no list of numbers such as \"0-3,8\"",
                         std::invalid_argument);
    CHECK_THROWS_AS(options().cpus(list{}), std::invalid_argument);
    CHECK_THROWS_AS(options().cpus({-1}), std::invalid_argument);
}

TEST_CASE("cpu parts: what is set last counts, of a list and of a part") {
    const auto of = [](const options& how) {
        return detail::options_access::settings(how).where.limits.cpus->list;
    };
    CHECK(of(options().cpus({1, 0}).spread_cpus()).empty());
    CHECK(of(options().spread_cpus().cpus({1, 0})) == list{0, 1});
}

}  // namespace cpu_parts_test
