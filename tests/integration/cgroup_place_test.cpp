// SPDX-License-Identifier: BSL-1.0
// options::cgroup: the places where a group can have its leaf, and those where it can't.
#include "cgroup_support.hpp"
#include "live_support.hpp"
#include "methods.hpp"
#include "procfs.hpp"
#include "start_support.hpp"
#include "worker_support.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

namespace cgroup_place_test {

using namespace cohort::test;
using cohort::start_method;
namespace fs = std::filesystem;

std::string cgroups_of_worker(int) { return read_file("/proc/self/cgroup"); }
std::string name_of_leaf(const std::string& cgroups) {
    for (const auto& line : lines_of(cgroups))
        if (line.rfind("0::", 0) == 0)
            return line.substr(line.rfind('/') + 1);
    return {};
}

TEST_CASE("cgroup place: cgroup::automatic reports no error where no cgroup can be made") {
    if (cohort::capabilities().tree.tier.rfind("cgroup", 0) == 0)
        return skip("it can be had");
    const leak_guard guard;
    CHECK_FALSE(cohort::capabilities().tree.reason.empty());
    CHECK(ended(cohort::command("true"), 2).success());
}

TEST_CASE("cgroup place: a group can be put below a given one, with any process group") {
    if (!has_cgroups())
        return;
    const scratch_cgroup place;
    const leak_guard guard;
    for (const auto method : {start_method::spawn, start_method::fork})
        for (const auto where : {cohort::process_group::own, cohort::process_group::inherit}) {
            const auto report = ended(
                cohort::function<cgroups_of_worker>(),
                cohort::options(2).cgroup(place.path()).process_group(where).start_method(method));
            REQUIRE_MESSAGE(report.success(), fmt::format("{}", report));
            const auto cgroups = report.outcomes[0].result<std::string>();
            CAPTURE(cgroups);
            CHECK(name_of_leaf(cgroups).rfind("cohort-", 0) == 0);
            CHECK(cgroups.find(fs::path(place.path()).filename().string() + "/cohort-") !=
                  cgroups.npos);
            CHECK(report.outcomes[1].result<std::string>() == cgroups);
            CHECK(place.group_cgroups().empty());
        }
}

TEST_CASE("cgroup place: a given place that does not work is a spawn_error") {
    const leak_guard guard;
    const scratch_directory scratch;
    const bool forced = forced_tiers().find("no_cgroup") != std::string::npos;
    const std::pair<std::string, std::errc> places[] = {
        {scratch.path() + "/none", std::errc::no_such_file_or_directory},
        {scratch.write("file", ""), std::errc::not_a_directory},
        {scratch.path(), std::errc::not_supported}};
    for (const auto& [place, why] : places) {
        const auto error = thrown_by<cohort::spawn_error>(cohort::command("true"),
                                                          cohort::options(2).cgroup(place));
        CHECK(error.stage() == "cgroup");
        CHECK(error.code() == (forced ? std::errc::not_supported : why));
        CHECK(std::string(error.what()).rfind("cgroup(\"" + place + "\"): ", 0) == 0);
    }
}

TEST_CASE("cgroup place: a leaf that takes no worker is an error, and leaves nothing") {
    if (!has_cgroups())
        return;
    const scratch_cgroup domain;  // becomes the domain of the threaded one, in place of our own
    const scratch_cgroup place(domain.path());
    // What is made in a threaded cgroup takes no process before it is threaded too.
    if (!(std::ofstream(place.path() + "/cgroup.type") << "threaded" << std::flush))
        return skip("no threaded cgroup to be had");
    have_server();
    const leak_guard guard;
    for (const auto method : all_methods) {
        const auto error = thrown_by<cohort::spawn_error>(
            cohort::function<cgroups_of_worker>(),
            cohort::options(2).cgroup(place.path()).start_method(method));
        CHECK(error.stage() == "cgroup");
        CHECK(error.error_index() == 0);
        CHECK(error.code() == std::errc::operation_not_supported);
        CHECK(place.group_cgroups().empty());
    }
}

}  // namespace cgroup_place_test
