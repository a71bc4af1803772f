// SPDX-License-Identifier: BSL-1.0
#include "output/routes/pattern.hpp"
#include "output/routes/routes.hpp"

#include <cohort/command.hpp>
#include <cohort/options.hpp>
#include <cohort/sinks.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

namespace routes_test {

using namespace cohort;
using output::stream_route;
using output::target_plan;
using kind = stream_route::kind;

namespace {

output::group_routes routes_of(const command& work, const options& how) {
    detail::spawn_plan plan;
    plan.settings = detail::options_access::settings(how);
    detail::add_program(plan, detail::command_access::program(work));
    return output::make_routes(plan, {"group", "host", "abcdefgh", "/home"});
}

}  // namespace

TEST_CASE("routes: without sinks the streams are inherited, and the input is /dev/null") {
    const auto routes = routes_of(command("true"), options(2));
    CHECK(routes.workers.at(1).out.what == kind::inherited);
    CHECK(routes.workers.at(1).err.what == kind::inherited);
    CHECK(routes.workers.at(1).in.path == "/dev/null");
    CHECK_FALSE(routes.has_pipes);
    CHECK(routes.descriptors(1) == 0);
}

TEST_CASE("routes: a worker's host is the one that the group has for it, else this machine") {
    detail::spawn_plan plan;
    plan.settings = detail::options_access::settings(
        options(2).stdout_to(console().tag("{host} {index}|")).stderr_to(console()));
    detail::add_program(plan, detail::command_access::program(command("true")));
    const auto tag_of = [](const output::worker_routes& worker) {
        return std::get<output::target_route>(worker.out.sinks.at(0)).tag;
    };
    output::route_names names{"group", "here", "abcdefgh", "/home", {}};
    auto routes = output::make_routes(plan, names);
    CHECK(tag_of(routes.workers.at(1)) == "here 1|");
    CHECK(routes.workers.at(1).host == nullptr);
    for (const auto* host : {"node02", "node03"})
        names.hosts.push_back(std::make_shared<const std::string>(host));
    routes = output::make_routes(plan, names);
    CHECK(tag_of(routes.workers.at(0)) == "node02 0|");
    CHECK(tag_of(routes.workers.at(1)) == "node03 1|");
    CHECK(routes.workers.at(1).host == names.hosts.at(1));
}

TEST_CASE("routes: a plain file of one worker is opened by the child") {
    const auto routes = routes_of(command("true"), options(2).stdout_to("{index}/{group}.log"));
    CHECK(routes.workers.at(1).out.what == kind::file);
    CHECK(routes.workers.at(1).out.path == "1/group.log");
    CHECK(routes.workers.at(1).out.truncates);
    CHECK(routes.targets.empty());
}

TEST_CASE("routes: a file of several workers is one target, which this process writes") {
    const auto routes = routes_of(command("true"), options(3).stdout_to("log"));
    CHECK(routes.workers.at(2).out.what == kind::piped);
    REQUIRE(routes.targets.size() == 1);
    CHECK_FALSE(routes.targets[0].is_raw);
    CHECK(routes.descriptors(3) == 7);
}

TEST_CASE("routes: streams that share a file must agree how it is written") {
    const auto both = [](auto out, auto err) {
        return routes_of(command("true"), options(1).stdout_to(out).stderr_to(err));
    };
    CHECK_THROWS_WITH_AS(both(file("x").append(), file("x")),
                         "cohort: several streams are written to x: give each the same append(), "
                         "rotate() and timestamps()",
                         std::invalid_argument);
    CHECK_THROWS_AS(both(file("x").timestamps(), file("./x").tagged()), std::invalid_argument);
    CHECK_THROWS_AS(both(file("x").rotate(4096, 2), file("x").rotate(4096, 3)),
                    std::invalid_argument);
    CHECK(both(file("x").tagged("out: "), file("x").tagged("err: ")).targets.size() == 1);
}

TEST_CASE("routes: two names of one path are one file") {
    const auto how =
        options(1).working_directory("/home/a").stdout_to("./x").stderr_to("/home/a/x");
    const auto routes = routes_of(command("true"), how);
    CHECK(routes.workers.at(0).out.what == kind::file);
    CHECK(routes.workers.at(0).err.what == kind::joined);
}

TEST_CASE("routes: a path behind a link is not taken for the one before it") {
    const auto how = options(1).stdout_to("link/../x").stderr_to("x");
    const auto routes = routes_of(command("true"), how);
    CHECK(routes.workers.at(0).out.what == kind::file);
    CHECK(routes.workers.at(0).out.path == "link/../x");
    CHECK(routes.workers.at(0).err.what == kind::file);
    CHECK(routes.workers.at(0).err.path == "x");
}

TEST_CASE("routes: workers in directories of their own have files of their own") {
    detail::spawn_plan plan;
    plan.settings = detail::options_access::settings(options(2).stdout_to("log"));
    for (const auto* at : {"/a", "/b"})
        detail::add_program(plan,
                            detail::command_access::program(command("true").working_directory(at)));
    const auto routes = output::make_routes(plan, {"group", "host", "abcdefgh", "/home"});
    CHECK(routes.workers.at(0).out.what == kind::file);
    CHECK(routes.workers.at(1).out.what == kind::file);
}

TEST_CASE("routes: a file beside other sinks gets the bytes as they are if it is one stream's") {
    const auto how = options(2).stdout_to(file("{index}"), capture());
    const auto routes = routes_of(command("true"), how);
    REQUIRE(routes.targets.size() == 2);
    CHECK(routes.targets[1].is_raw);
    CHECK(routes.workers.at(1).out.sinks.size() == 2);
}

TEST_CASE("routes: workers that the console does not show are read into nothing") {
    const auto routes = routes_of(command("true"), options(3).stdout_to(console().only(1)));
    CHECK(routes.workers.at(0).out.what == kind::piped);
    CHECK(routes.workers.at(0).out.sinks.empty());
    CHECK(std::get<output::target_route>(routes.workers.at(1).out.sinks.at(0)).tag == "[1]: ");
    CHECK(routes.targets.at(0).what == target_plan::kind::own_stdout);
}

TEST_CASE("routes: the queue's buffer is the largest that a stream asks for") {
    const auto how =
        options(1).stdout_to(lines().buffer(100'000)).stderr_to(chunks().buffer(200'000));
    CHECK(routes_of(command("true"), how).buffer == 200'000);
    CHECK(routes_of(command("true"), options(1).stdout_to(capture())).buffer == 0);
}

TEST_CASE("routes: a buffer that nobody chose may grow, where lines would be dropped") {
    const auto grown = [](auto sink) {
        const auto routes = routes_of(command("true"), options(1).stdout_to(sink));
        CHECK(routes.buffer > 0);
        return routes.buffer_while_read;
    };
    CHECK(grown(lines()) == 16 << 20);
    CHECK(grown(chunks()) == 16 << 20);
    CHECK(grown(lines().buffer(1 << 20)) == 0);
    CHECK(grown(chunks().buffer(1 << 20)) == 0);
    CHECK(grown(lines().when_full(cohort::when_full::block)) == 0);
    const auto both = options(1).stdout_to(lines().buffer(100'000)).stderr_to(chunks());
    CHECK(routes_of(command("true"), both).buffer_while_read == 16 << 20);
}

TEST_CASE("routes: logs add a file to each stream that has no course of its own") {
    auto how = options(2).logs(logs("dir").run_id("run")).stderr_to(capture());
    const auto routes = routes_of(command("true"), how);
    CHECK(routes.log_directory == "dir/run/attempt_0");
    CHECK(routes.path_of_logs == "/home/dir/run/attempt_0");
    CHECK(routes.workers.at(1).out.path == "dir/run/attempt_0/1/stdout.log");
    CHECK(routes.workers.at(1).err.sinks.size() == 2);
    const auto chosen = routes_of(command("true"), how.stdout_to(discard()).stderr_to(inherit()));
    CHECK(chosen.workers.at(0).out.path == "/dev/null");
    CHECK(chosen.workers.at(0).err.what == kind::inherited);
}

TEST_CASE("routes: a group of no workers has no logs") {
    CHECK(routes_of(command("true"), options(0).logs(logs("logs"))).log_directory.empty());
}

TEST_CASE("routes: without a run id the run is named by the group and random letters") {
    CHECK(routes_of(command("true"), options(1).logs(logs("dir"))).log_directory ==
          "dir/group_abcdefgh/attempt_0");
    cohort::output::route_names names;
    names.random = "abcdefgh";
    names.group = "../other/one";
    CHECK(cohort::output::run_id_of({}, names) == ".._other_one_abcdefgh");
}

TEST_CASE("routes: workers that may outlive this process can't need it for a stream") {
    const auto outliving = options(1).parent_death_signal(0);
    CHECK_THROWS_AS(routes_of(command("true").stdout_to(capture()), outliving),
                    std::invalid_argument);
    CHECK_THROWS_AS(routes_of(command("true").stdin_from(feed()), outliving),
                    std::invalid_argument);
    CHECK_NOTHROW(routes_of(command("true").stdout_to("x").stdin_from(bytes("x")), outliving));
}

TEST_CASE("routes: a command's setting replaces the group's") {
    const auto how = options(1).stdout_to(capture()).stdin_from(feed());
    const auto routes = routes_of(command("true").stdout_to(inherit()).stdin_from("file"), how);
    CHECK(routes.workers.at(0).out.what == kind::inherited);
    CHECK(routes.workers.at(0).in.path == "file");
}

}  // namespace routes_test
