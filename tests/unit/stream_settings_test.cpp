// SPDX-License-Identifier: BSL-1.0
#include <cohort/command.hpp>
#include <cohort/options.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

namespace stream_settings_test {

using cohort::command;
using cohort::options;
using cohort::detail::command_access;
using cohort::detail::options_access;
using namespace std::chrono_literals;
using namespace std::string_literals;

namespace {

const cohort::detail::group_settings& of(const options& o) { return options_access::settings(o); }

cohort::detail::sink file_at(const char* path) { return cohort::detail::file_at("test", path); }

}  // namespace

TEST_CASE("stream settings: the last setting of a standard stream counts") {
    const auto file_last = options().fd(0, 0).fd(0, 1).stdin_from("in").stdout_to("out");
    CHECK(of(file_last).where.descriptors.empty());
    CHECK(of(file_last).where.input == cohort::detail::input(cohort::detail::path_input{"in"}));
    CHECK(of(file_last).where.sinks.at(1) == std::vector{file_at("out")});
    const auto fd_last = options().stdin_from("in").output_to("out").fd(0, 0).fd(0, 1);
    CHECK(of(fd_last).where.descriptors.size() == 2);
    CHECK_FALSE(of(fd_last).where.input);
    CHECK(of(fd_last).where.sinks.size() == 1);
    CHECK(of(fd_last).where.sinks.at(2) == std::vector{file_at("out")});
}

TEST_CASE("stream settings: of a stream's settings the command's count, whatever they are") {
    const auto files = options().stdin_from("in").output_to("o");
    const auto descriptors = options().fd(0, 0).fd(0, 1).fd(0, 2).fd(0, 5);
    const command by_descriptor = command("x").fd(0, 0).fd(0, 1);
    const command by_file = command("x").stdin_from("c").stdout_to("c");
    const auto first = of(files).where.overridden_by(command_access::program(by_descriptor).where);
    CHECK(first.descriptors.size() == 2);
    CHECK_FALSE(first.input);
    CHECK(first.sinks.size() == 1);
    CHECK(first.sinks.at(2) == std::vector{file_at("o")});
    const auto second = of(descriptors).where.overridden_by(command_access::program(by_file).where);
    CHECK(second.descriptors.size() == 2);
    CHECK(second.descriptors.count(2) == 1);
    CHECK(second.descriptors.count(5) == 1);
    CHECK(second.input == cohort::detail::input(cohort::detail::path_input{"c"}));
    CHECK(second.sinks.at(1) == std::vector{file_at("c")});
}

TEST_CASE("stream settings: the settings of streams for the whole group") {
    const auto o = options().name("train").flush_timeout(0.5s).pipe_size(1 << 20).logs(
        cohort::logs("logs").run_id("job42"));
    CHECK(of(o).name == "train");
    CHECK(of(o).flush_timeout == 500ms);
    CHECK(of(o).pipe_size == 1 << 20);
    CHECK(of(o).logs == cohort::detail::log_settings{"logs", "job42"});
    CHECK(o != options());
    CHECK(of(options()).name.empty());
    CHECK(of(options()).flush_timeout == 1s);
    CHECK(of(options()).pipe_size == 0);
    CHECK_FALSE(of(options()).logs);
    CHECK_THROWS_WITH_AS(options().name(""), "cohort: name: empty", std::invalid_argument);
    CHECK_THROWS_WITH_AS(options().name("a\0b"s), "cohort: name: \"a\" has a NUL at position 1",
                         std::invalid_argument);
    CHECK_THROWS_AS(options().flush_timeout(-1ms), std::invalid_argument);
    CHECK_THROWS_WITH_AS(options().pipe_size(0), "cohort: pipe_size: a pipe of 0 bytes",
                         std::invalid_argument);
    CHECK_THROWS_WITH_AS(options().pipe_size(-1), "cohort: pipe_size: negative",
                         std::invalid_argument);
}

}  // namespace stream_settings_test
