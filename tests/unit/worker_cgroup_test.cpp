// SPDX-License-Identifier: BSL-1.0
// The cgroups of many workers that left a process, with plain directories in place of the kernel's.
#include "procfs.hpp"
#include "scratch.hpp"
#include "start/cgroup/worker_cgroup.hpp"
#include "sys_support.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include <fcntl.h>
#include <unistd.h>

namespace worker_cgroup_test {

using namespace cohort;
using namespace cohort::test;
namespace fs = std::filesystem;

namespace {

/// The directory of a group's cgroup. A file in that of a worker is a process that it has left.
class fake_group {
public:
    void start(const std::string& worker) { fs::create_directory(directory_.file(worker)); }
    /// A worker starts and ends.
    void pass(const std::string& worker, bool leaves_process) {
        start(worker);
        if (leaves_process)
            (void)directory_.write(worker + "/process", "");
        start::worker_cgroup(group_, worker).remove_if_empty();
    }
    void end_process_of(const std::string& worker) {
        fs::remove(directory_.file(worker + "/process"));
    }
    std::set<std::string> left() const { return names_in(directory_.path()); }

private:
    scratch_directory directory_;
    std::shared_ptr<start::group_cgroup> group_ = std::make_shared<start::group_cgroup>(
        directory_.path(),
        base::unique_fd(::open(directory_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
        ::getpid() + 1);  // no owner: its destructor leaves the directory to the scratch
};

using names = std::set<std::string>;

}  // namespace

TEST_CASE("worker cgroup: those of many that left a process go a few at a time") {
    fake_group group;
    for (int worker = 0; worker < 100; ++worker)
        group.pass(std::to_string(worker), true);
    CHECK(group.left().size() == 100);
    for (int worker = 0; worker < 100; ++worker)
        group.end_process_of(std::to_string(worker));
    CHECK(group.left().size() == 100);
    std::size_t left = 100;
    for (int later = 0; left > 0; ++later) {
        group.pass("later", false);
        REQUIRE(group.left().size() < left);
        REQUIRE(group.left().size() + 8 >= left);
        left = group.left().size();
    }
}

TEST_CASE("worker cgroup: one whose process stays keeps no other from being removed") {
    fake_group group;
    group.pass("daemon", true);
    for (const auto* worker : {"a", "b", "c"}) {
        group.pass(worker, true);
        group.end_process_of(worker);
    }
    group.pass("later", false);
    group.pass("last", false);
    CHECK(group.left() == names{"daemon"});
    group.end_process_of("daemon");
    group.pass("last", false);
    CHECK(group.left().empty());
}

TEST_CASE("worker cgroup: a new one with the name of one that was removed is left alone") {
    fake_group group;
    group.pass("worker-0", true);
    group.end_process_of("worker-0");
    group.pass("worker-1", false);
    CHECK(group.left().empty());
    group.start("worker-0");
    group.pass("worker-1", false);
    CHECK(group.left() == names{"worker-0"});
}

}  // namespace worker_cgroup_test
