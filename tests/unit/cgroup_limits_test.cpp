// SPDX-License-Identifier: BSL-1.0
// The limits of cgroups, with plain files in place of the kernel's.
#include "base/sys/descriptors.hpp"
#include "scratch.hpp"
#include "start/cgroup/cgroup.hpp"

#include <cohort/options.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <fcntl.h>

namespace cgroup_limits_test {

using namespace cohort;
using namespace cohort::test;
using start::limits_of;

namespace {

constexpr auto none = std::nullopt;

/// A directory with files as in a cgroup, in that of another one.
class fake_cgroup {
public:
    fake_cgroup() {
        std::filesystem::create_directories(path());
        for (const std::string place : {"", "group/"})
            for (const std::string name : {"cgroup.controllers", "cgroup.subtree_control"})
                (void)scratch_.write(place + name, "");
    }
    std::string place() const { return scratch_.path(); }
    std::string path() const { return scratch_.file("group"); }
    void write(const std::string& name, const std::string& text) {
        (void)scratch_.write(name, text);
    }
    std::string read(const std::string& name) const { return read_file(scratch_.file(name)); }
    start::limit_failure set(const start::wanted_limits& wanted) const {
        const base::unique_fd directory(::open(path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        return start::set_limits(directory.get(), path(), wanted);
    }

private:
    scratch_directory scratch_;
};

}  // namespace

TEST_CASE("cgroup limits: each becomes the text of a file") {
    using list = std::vector<start::cgroup_limit>;
    CHECK(limits_of(none, none, none).empty());
    CHECK(limits_of(1 << 20, none, none) ==
          list{{"memory", "memory.max", "1048576"}, {"memory", "memory.swap.max", "0", true}});
    CHECK(limits_of(none, 1.5, none) == list{{"cpu", "cpu.max", "150000 100000"}});
    CHECK(limits_of(none, 0.01, none) == list{{"cpu", "cpu.max", "1000 100000"}});
    CHECK(limits_of(none, none, 200) == list{{"pids", "pids.max", "200"}});
}

TEST_CASE("cgroup limits: they are written where the files are, and swap may lack") {
    fake_cgroup fake;
    fake.write("group/cgroup.controllers", "cpu memory\n");
    fake.write("group/memory.max", "");
    fake.write("group/cpu.max", "");
    CHECK_FALSE(fake.set({limits_of(4096, 2, none), {}}));
    CHECK(fake.read("group/memory.max") == "4096");
    CHECK(fake.read("group/cpu.max") == "200000 100000");
    CHECK(fake.read("group/cgroup.subtree_control").empty());
}

TEST_CASE("cgroup limits: a file that can't be written is named") {
    fake_cgroup fake;
    fake.write("group/cgroup.controllers", "memory\n");
    const auto failed = fake.set({limits_of(4096, none, none), {}});
    CHECK(failed.error == std::errc::no_such_file_or_directory);
    CHECK(failed.text == "writing 4096 to " + fake.path() + "/memory.max");
}

TEST_CASE("cgroup limits: a controller that nobody has is named with the file that lacks it") {
    fake_cgroup fake;
    fake.write("cgroup.controllers", "cpu memory2\n");
    for (const auto& wanted : {start::wanted_limits{limits_of(4096, none, none), {}},
                               start::wanted_limits{{}, {"memory"}}}) {
        const auto failed = fake.set(wanted);
        CHECK(failed.error == std::errc::not_supported);
        CHECK(failed.text ==
              "the controller memory is not in " + fake.place() + "/cgroup.controllers");
    }
}

TEST_CASE(
    "cgroup limits: the cgroup above hands down what it has, and the group's to its workers") {
    fake_cgroup fake;
    fake.write("cgroup.controllers", "pids\n");
    CHECK_FALSE(fake.set({{}, {"pids"}}));
    CHECK(fake.read("cgroup.subtree_control") == "+pids");
    CHECK(fake.read("group/cgroup.subtree_control") == "+pids");
}

TEST_CASE("cgroup limits: the first file stands for all where there is no cgroup") {
    CHECK(start::wanted_limits{limits_of(none, 1, none), {}}.first_file() == "cpu.max");
    CHECK(start::wanted_limits{{}, {"pids"}}.first_file() == "pids.max");
}

TEST_CASE("cgroup limits: a setter refuses a limit that the kernel does not know") {
    CHECK_THROWS_WITH_AS(options().memory_max(0), "cohort: memory_max: 0", std::invalid_argument);
    CHECK_THROWS_AS(options().memory_max(-1), std::invalid_argument);
    CHECK_THROWS_AS(options().tasks_max(0), std::invalid_argument);
    CHECK_THROWS_AS(options().group_memory_max(0), std::invalid_argument);
    for (const double cores : {0.0, 0.009, -1.0, std::numeric_limits<double>::quiet_NaN(),
                               std::numeric_limits<double>::infinity()}) {
        CHECK_THROWS_AS(options().cpu_max(cores), std::invalid_argument);
        CHECK_THROWS_AS(options().group_cpu_max(cores), std::invalid_argument);
    }
}

}  // namespace cgroup_limits_test
