// SPDX-License-Identifier: BSL-1.0
// The memory controller, with plain files in place of the kernel's: what they may say, and what
// they must not be believed.
#include "scratch.hpp"
#include "start/cgroup/group_cgroups.hpp"
#include "start/cgroup/memory_cgroup.hpp"
#include "start/cgroup/worker_cgroup.hpp"
#include "sys_support.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>

namespace memory_cgroup_test {

using namespace cohort;
using namespace cohort::test;
namespace fs = std::filesystem;

namespace {

constexpr const char* no_kill = "low 0\nhigh 0\nmax 3\noom 0\noom_kill 0\noom_group_kill 0\n";
constexpr const char* one_kill = "low 0\nhigh 0\nmax 9\noom 1\noom_kill 1\noom_group_kill 0\n";

/// Directories with files as in a host's cgroup, in that of its group, and in that of a worker.
class fake_cgroups {
public:
    static constexpr const char* place = "place";
    static constexpr const char* group = "place/group";
    static constexpr const char* worker = "place/group/worker-0";

    fake_cgroups() { fs::create_directories(scratch_.file(worker)); }
    void write(const std::string& cgroup, const std::string& name, const std::string& text) {
        (void)scratch_.write(cgroup + "/" + name, text);
    }
    std::string read(const std::string& cgroup, const std::string& name) const {
        return cohort::test::read_file(path(cgroup) + "/" + name);
    }
    std::string path(const std::string& cgroup) const { return scratch_.file(cgroup); }
    base::unique_fd open(const std::string& cgroup) const {
        base::unique_fd fd(::open(path(cgroup).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        REQUIRE(fd);
        return fd;
    }
    std::optional<start::oom_kill> find_oom_kill() const {
        return start::find_oom_kill(open(worker).get());
    }
    std::shared_ptr<start::group_cgroup> group_cgroup() const {
        return std::make_shared<start::group_cgroup>(path(group), open(group), ::getpid());
    }

private:
    cohort::test::scratch_directory scratch_;
};

}  // namespace

TEST_CASE("memory cgroup: a kill is reported with the worker's limit and peak") {
    const no_leftovers guard;
    fake_cgroups fake;
    fake.write(fake.worker, "memory.events", one_kill);
    fake.write(fake.worker, "memory.max", "67108864\n");
    fake.write(fake.worker, "memory.peak", "67003904\n");
    const auto kill = fake.find_oom_kill();
    CHECK(kill == start::oom_kill{67108864, 67003904});
    CHECK(to_string(kill.value()) ==
          "killed by the kernel's out-of-memory killer: limit 64.0 MiB, peak 63.9 MiB");
}

TEST_CASE("memory cgroup: without a kill nothing is reported") {
    fake_cgroups fake;
    CHECK_FALSE(fake.find_oom_kill());
    fake.write(fake.worker, "memory.events", no_kill);
    fake.write(fake.worker, "memory.max", "67108864\n");
    CHECK_FALSE(fake.find_oom_kill());
}

TEST_CASE("memory cgroup: events that are cut, too long or no numbers report nothing") {
    fake_cgroups fake;
    const std::string long_text = one_kill + std::string(5000, '\n');
    for (const std::string text :
         {"", "\n", "oom_kill", "oom_kill\n", "oom_kill \n", "oom_kill 1", "oom_kill -1\n",
          "oom_kill 1x\n", "oom_kill  1\n", "oom_kill one\n", "oom_kill 99999999999999999999\n",
          "oom_kills 1\n", "oom_kill:1\n", "oom_group_kill 1\n", "xoom_kill 1\n", "oom 1\n",
          long_text.c_str()}) {
        CAPTURE(text);
        fake.write(fake.worker, "memory.events", text);
        CHECK_FALSE(fake.find_oom_kill());
    }
    fake.write(fake.worker, "memory.events", "oom_kill 2\nand what later kernels say");
    CHECK(fake.find_oom_kill());
}

TEST_CASE("memory cgroup: a FIFO in place of a file reports nothing and blocks nothing") {
    const no_leftovers guard;
    fake_cgroups fake;
    const auto events = fake.path(fake.worker) + "/memory.events";
    REQUIRE(::mkfifo(events.c_str(), 0644) == 0);
    CHECK_FALSE(fake.find_oom_kill());
    fs::remove(events);
    fs::create_directory(events);
    CHECK_FALSE(fake.find_oom_kill());
}

TEST_CASE("memory cgroup: the limit is that of the nearest cgroup that has one") {
    const no_leftovers guard;
    fake_cgroups fake;
    fake.write(fake.worker, "memory.events", one_kill);
    fake.write(fake.worker, "memory.max", "max\n");
    CHECK(fake.find_oom_kill() == start::oom_kill{});  // what is above is no cgroup with memory
    fake.write(fake.group, "memory.max", "max\n");
    fake.write(fake.place, "memory.max", "1048576\n");
    CHECK(fake.find_oom_kill()->limit == 1048576);
    fake.write(fake.group, "memory.max", "4096\n");
    CHECK(fake.find_oom_kill()->limit == 4096);
    fake.write(fake.group, "memory.max", "max\n");
    fake.write(fake.place, "memory.max", "max\n");
    CHECK_FALSE(fake.find_oom_kill()->limit);
}

TEST_CASE("memory cgroup: a limit or a peak that is cut is left out") {
    fake_cgroups fake;
    fake.write(fake.worker, "memory.events", one_kill);
    for (const std::string text : {"", "10", "10 20\n", "max", "-1\n", "18446744073709551616\n"}) {
        CAPTURE(text);
        fake.write(fake.worker, "memory.max", text);
        fake.write(fake.worker, "memory.peak", text);
        CHECK(fake.find_oom_kill() == start::oom_kill{});
    }
}

TEST_CASE("memory cgroup: the text leaves out what is not known") {
    const std::string text = "killed by the kernel's out-of-memory killer";
    CHECK(to_string(start::oom_kill{}) == text);
    CHECK(to_string(start::oom_kill{1 << 20, {}}) == text + ": limit 1.0 MiB");
    CHECK(to_string(start::oom_kill{{}, 3 << 19}) == text + ": peak 1.5 MiB");
}

TEST_CASE("memory cgroup: a cgroup counts memory where the controller is available") {
    const no_leftovers guard;
    const std::pair<const char*, bool> lists[] = {{"cpuset cpu io memory hugetlb pids\n", true},
                                                  {"memory\n", true},
                                                  {"cpu memory\n", true},
                                                  {"\n", false},
                                                  {"cpu memory2 xmemory pids\n", false},
                                                  {"memory", false},
                                                  {"", false}};
    for (const auto& [list, has_memory] : lists) {
        CAPTURE(std::string(list));
        fake_cgroups fake;
        fake.write(fake.group, "cgroup.controllers", list);
        fake.write(fake.group, "cgroup.subtree_control", "");
        const auto group = fake.group_cgroup();
        CHECK_FALSE(group->counts_memory());
        CHECK_FALSE(group->count_memory());
        CHECK(group->counts_memory() == has_memory);
        CHECK(fake.read(fake.group, "cgroup.subtree_control") == (has_memory ? "+memory" : ""));
    }
}

TEST_CASE("memory cgroup: a controller that cannot be enabled is an error") {
    fake_cgroups fake;
    fake.write(fake.group, "cgroup.controllers", "memory\n");
    const auto group = fake.group_cgroup();
    CHECK(group->count_memory() == std::errc::no_such_file_or_directory);
    CHECK_FALSE(group->counts_memory());
}

TEST_CASE("memory cgroup: each worker has its own cgroup, and a restarted one another") {
    const no_leftovers guard;
    fake_cgroups fake;
    fs::remove(fake.path(fake.worker));
    std::error_code error;
    base::unique_fd directory;
    const auto group = fake.group_cgroup();
    const auto make = [&](int index) {
        auto made = start::worker_cgroup::make(group, index, directory, error);
        REQUIRE(made);
        CHECK_FALSE(error);
        struct stat opened {};
        struct stat named {};
        CHECK(::fstat(directory.get(), &opened) == 0);
        CHECK(::stat((group->path() + "/" + made->name()).c_str(), &named) == 0);
        CHECK(opened.st_ino == named.st_ino);
        CHECK((::fcntl(directory.get(), F_GETFD) & FD_CLOEXEC) != 0);
        return made;
    };
    const auto first = make(0);
    const auto other = make(12);
    const auto again = make(0);
    const auto once_more = make(0);
    CHECK(first->name() == "worker-0");
    CHECK(other->name() == "worker-12");
    CHECK(again->name() == "worker-0-2");
    CHECK(once_more->name() == "worker-0-3");

    fake.write(std::string(fake.group) + "/worker-0", "memory.events", one_kill);
    fake.write(std::string(fake.group) + "/worker-0-2", "memory.events", no_kill);
    CHECK(first->find_oom_kill());
    CHECK_FALSE(again->find_oom_kill());
    CHECK_FALSE(other->find_oom_kill());
    fs::remove_all(fake.path(fake.group));
    CHECK(group->end());
    CHECK_FALSE(first->find_oom_kill());
}

TEST_CASE("memory cgroup: a worker's cgroup that cannot be made is an error") {
    fake_cgroups fake;
    std::error_code error;
    base::unique_fd directory;
    const auto group = fake.group_cgroup();
    fs::remove_all(fake.path(fake.group));
    CHECK_FALSE(start::worker_cgroup::make(group, 0, directory, error));
    CHECK(error == std::errc::no_such_file_or_directory);
    CHECK_FALSE(directory);
}

}  // namespace memory_cgroup_test
