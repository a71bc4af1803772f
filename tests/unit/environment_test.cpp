// SPDX-License-Identifier: BSL-1.0
#include "protocol/order/caller.hpp"

#include <ostream>  // doctest prints string views

#include <doctest/doctest.h>

namespace environment_test {

using cohort::detail::env_change;
using cohort::detail::placement;
using cohort::protocol::apply;
using cohort::protocol::candidates;
using cohort::protocol::environment;
using cohort::protocol::find;
using cohort::protocol::without;
using strings = std::vector<std::string>;

namespace {

placement changing(std::vector<env_change> changes) {
    placement where;
    where.env = std::move(changes);
    return where;
}

env_change set(const char* name, const char* value) { return {name, value}; }
env_change unset(const char* name) { return {name, std::nullopt}; }

}  // namespace

TEST_CASE("environment: without changes it is the base") {
    CHECK(apply({"A=1", "B=2"}, {}) == environment{"A=1", "B=2"});
}

TEST_CASE("environment: cleared, it holds only what is set afterwards") {
    placement where = changing({set("C", "3")});
    where.clear_env = true;
    CHECK(apply({"A=1", "B=2"}, where) == environment{"C=3"});
}

TEST_CASE("environment: a set name keeps its place, a new one goes to the end") {
    CHECK(apply({"A=1", "B=2"}, changing({set("A", "x=y"), set("C", "")})) ==
          environment{"A=x=y", "B=2", "C="});
}

TEST_CASE("environment: the last change of a name counts") {
    CHECK(apply({"A=1"}, changing({set("A", "2"), unset("A"), set("A", "3")})) ==
          environment{"A=3"});
    CHECK(apply({}, changing({set("A", "2"), unset("A")})) == environment());
    CHECK(apply({"A=1"}, changing({unset("B")})) == environment{"A=1"});
}

TEST_CASE("environment: a name that the base holds twice is held once after a change") {
    CHECK(apply({"A=1", "B=2", "A=3"}, changing({set("A", "4")})) == environment{"A=4", "B=2"});
    CHECK(apply({"A=1", "B=2", "A=3"}, changing({unset("A")})) == environment{"B=2"});
}

TEST_CASE("environment: names that begin alike and entries without a sign are left alone") {
    CHECK(apply({"AB=1", "A", "=A"}, changing({set("A", "2")})) ==
          environment{"AB=1", "A", "=A", "A=2"});
}

TEST_CASE("environment: names can be taken out, all of their entries") {
    constexpr std::string_view names[] = {"A", "C"};
    CHECK(without({"A=1", "AB=2", "C=3", "A=4", "A", "P_1=5"}, names, "P_") ==
          environment{"AB=2", "A"});
}

TEST_CASE("environment: find gives the first value, or none") {
    const environment some{"PATHS=x", "PATH=/bin", "PATH=/usr/bin", "EMPTY="};
    CHECK(find(some, "PATH") == "/bin");
    CHECK(find(some, "EMPTY") == "");
    CHECK_FALSE(find(some, "HOME"));
}

TEST_CASE("environment: a program with a slash is not searched for") {
    CHECK(candidates("./a", "/bin") == strings{"./a"});
    CHECK(candidates("/opt/a", std::nullopt) == strings{"/opt/a"});
    CHECK(candidates("a/", "/bin") == strings{"a/"});
}

TEST_CASE("environment: a program without a slash is searched in each element of PATH") {
    CHECK(candidates("a", "/bin:/opt/x") == strings{"/bin/a", "/opt/x/a"});
    CHECK(candidates("a", std::nullopt) == strings{"/bin/a", "/usr/bin/a"});
}

TEST_CASE("environment: an empty element of PATH is the working directory") {
    CHECK(candidates("a", "") == strings{"./a"});
    CHECK(candidates("a", ":/bin:") == strings{"./a", "/bin/a", "./a"});
}

TEST_CASE("environment: an empty program name has no candidates") {
    CHECK(candidates("", "/bin").empty());
    CHECK(candidates("", std::nullopt).empty());
}

}  // namespace environment_test
