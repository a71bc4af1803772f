// SPDX-License-Identifier: BSL-1.0
// Which sinks of a group that spans several machines are where.
#include "output/routes/routes.hpp"

#include <cohort/command.hpp>
#include <cohort/options.hpp>
#include <cohort/sinks.hpp>

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <variant>

namespace far_routes_test {

using namespace cohort;
using output::queue_route;
using output::target_plan;
using output::target_route;
using kind = output::stream_route::kind;

namespace {

output::group_routes routes(output::routes_of machine, const options& how,
                            const command& work = command("true")) {
    detail::spawn_plan plan;
    plan.settings = detail::options_access::settings(how);
    detail::add_program(plan, detail::command_access::program(work));
    output::route_names names{"group", "here", "abcdefgh", "/home"};
    if (machine == output::routes_of::origin)
        names.hosts = {std::make_shared<const std::string>("alpha"),
                       std::make_shared<const std::string>("beta")};
    return output::make_routes(plan, names, machine);
}

output::group_routes at_host(const options& how, const command& work = command("true")) {
    return routes(output::routes_of::host, how, work);
}

output::group_routes at_origin(const options& how, const command& work = command("true")) {
    return routes(output::routes_of::origin, how, work);
}

}  // namespace

TEST_CASE("far routes: an inherited stream goes to the agent's console line by line") {
    const auto made = at_host(options(2));
    const auto& out = made.workers.at(1).out;
    REQUIRE(out.what == kind::piped);
    REQUIRE(out.sinks.size() == 1);
    const auto& to = std::get<target_route>(out.sinks[0]);
    CHECK(made.targets.at(to.target).what == target_plan::kind::own_stdout);
    CHECK(to.tag == "[1]: ");
    CHECK(made.buffer == 0);
}

TEST_CASE("far routes: of an inherited stream the origin has nothing") {
    const auto made = at_origin(options(2));
    CHECK(made.workers.at(1).out.what == kind::file);
    CHECK(made.workers.at(1).out.path == "/dev/null");
    CHECK_FALSE(made.has_pipes);
}

TEST_CASE("far routes: with logs() an inherited stream is in its log alone") {
    const auto made = at_host(options(2).logs(cohort::logs("x")));
    CHECK(made.workers.at(1).out.what == kind::file);
    CHECK(made.targets.empty());
    CHECK(at_origin(options(2).logs(cohort::logs("x"))).log_directory.empty());
}

TEST_CASE("far routes: at the host all sinks of the origin's become one") {
    const auto how = options(2)
                         .stdout_to(lines().buffer(4 << 20).when_full(when_full::drop_oldest),
                                    capture(), console())
                         .stderr_to(discard());
    const auto made = at_host(how);
    const auto& sinks = made.workers.at(0).out.sinks;
    REQUIRE(sinks.size() == 2);
    CHECK(std::holds_alternative<output::capture_route>(sinks[0]));
    const auto& to = std::get<queue_route>(sinks[1]);
    CHECK(to.longest == 0);
    CHECK(to.full == when_full::block);  // as the console's
    CHECK(made.buffer == std::size_t{4} << 20);
    CHECK(made.targets.empty());
}

TEST_CASE("far routes: what happens without room is the same at both ends") {
    for (const auto full : {when_full::drop_oldest, when_full::block}) {
        const auto how = options(2).stdout_to(lines().longest_line(99).when_full(full));
        const auto there = at_host(how);
        const auto here = at_origin(how);
        CHECK(std::get<queue_route>(there.workers.at(0).out.sinks.at(0)).full == full);
        const auto& to = std::get<queue_route>(here.workers.at(0).out.sinks.at(0));
        CHECK(to.full == full);
        CHECK(to.longest == 99);
        CHECK(there.buffer_while_read == here.buffer_while_read);
    }
}

TEST_CASE("far routes: files, captures and bytes of input are the host's") {
    const auto how = options(2)
                         .stdout_to(file("x"), capture(), console())
                         .stderr_to("{index}")
                         .stdin_from(bytes("text"));
    const auto made = at_origin(how);
    REQUIRE(made.workers.at(1).out.sinks.size() == 1);
    CHECK(std::holds_alternative<target_route>(made.workers.at(1).out.sinks[0]));
    CHECK(made.workers.at(1).err.path == "/dev/null");
    CHECK(made.workers.at(1).in.what == output::input_route::kind::file);
    CHECK(at_host(how).workers.at(1).in.what == output::input_route::kind::bytes);
}

TEST_CASE("far routes: a console that does not show a worker needs nothing of it") {
    const auto how = options(2).stdout_to(console().only(0));
    CHECK(at_host(how).workers.at(0).out.what == kind::piped);
    CHECK(at_host(how).workers.at(1).out.path == "/dev/null");
    CHECK(at_origin(how).workers.at(1).out.path == "/dev/null");
}

TEST_CASE("far routes: a command's streams count before the group's, at both ends") {
    const auto how = options(2).stdout_to(lines());
    const auto work = command("true").stdout_to("x").stderr_to(merge());
    CHECK(at_origin(how, work).workers.at(0).out.path == "/dev/null");
    CHECK(at_origin(how, work).workers.at(0).err.what == kind::joined);
    CHECK(at_host(how, work).buffer == 0);
}

TEST_CASE("far routes: tags at the origin name the host of each worker") {
    const auto made = at_origin(options(2).stdout_to(console().tag("{host}: ")));
    CHECK(std::get<target_route>(made.workers.at(1).out.sinks.at(0)).tag == "beta: ");
}

TEST_CASE("far routes: feed() is a feed at both ends") {
    const auto how = options(2).stdin_from(feed());
    CHECK(at_host(how).workers.at(0).in.what == output::input_route::kind::feed);
    CHECK(at_origin(how).workers.at(0).in.what == output::input_route::kind::feed);
}

}  // namespace far_routes_test
