// SPDX-License-Identifier: BSL-1.0
// The cgroup of a group where the kernel, or somebody else, does not let it be made or removed.
#include "cgroup_support.hpp"
#include "start/cgroup/group_cgroups.hpp"

#include <chrono>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include <sys/syscall.h>

namespace group_cgroups_test {

using namespace cohort;
using namespace cohort::test;

namespace {

start::group_cgroups::make_result make_in(const scratch_cgroup& place) {
    detail::group_settings settings;
    settings.cgroup_directory = place.path();
    return start::group_cgroups().make(settings);
}

/// Ends a cgroup while these ways to remove a directory fail. @return what end() returned, or -1
int end_where_removal_fails(const scratch_cgroup& place, int error) {
    return in_fork([&] {
        auto made = make_in(place);
        if (!made.cgroup || !deny(SYS_unlinkat, error) || !deny(SYS_rmdir, error))
            return -1;
        const bool is_over = made.cgroup->end();
        ::_exit(is_over ? 1 : 0);  // the destructor would try it again
    });
}

}  // namespace

TEST_CASE(
    "group cgroups: a cgroup that cannot be locked or found is an error, and nothing is left") {
    const no_leftovers guard;
    const scratch_cgroup place;
    if (!place)
        return;
    // Whoever goes on for ever is stopped here.
    std::ofstream(place.path() + "/cgroup.max.descendants") << "100" << std::flush;
    for (const long number : {SYS_flock, SYS_faccessat2})
        for (const int error : {ENOSYS, EPERM, ENOLCK, EWOULDBLOCK, ENOENT}) {
            CAPTURE(number);
            CAPTURE(error);
            CHECK(in_fork([&] {
                      // The C library asks the older call where the newer one is missing.
                      if (!deny(number, error) || !deny(SYS_faccessat, error))
                          return -1;
                      const auto made = make_in(place);
                      return made.cgroup ? 0 : made.error.value();
                  }) == error);
            CHECK(place.cgroups().empty());
        }
}

TEST_CASE("group cgroups: it is an error if every name is taken") {
    const scratch_cgroup place;
    if (!place)
        return;
    CHECK(in_fork([&] {
              if (!deny(SYS_mkdir, EEXIST))
                  return -1;
              return make_in(place).error.value();
          }) == EEXIST);
}

TEST_CASE("group cgroups: a cgroup that cannot be removed now is tried again") {
    const no_leftovers guard;
    const scratch_cgroup place;
    if (!place)
        return;
    for (const int error : {EBUSY, ENOMEM, EINTR, EIO, ENFILE}) {
        CAPTURE(error);
        CHECK(end_where_removal_fails(place, error) == 0);
    }
    start::end_orphaned_cgroups(place.path());
}

TEST_CASE("group cgroups: a cgroup that this process may not remove is left alone") {
    const no_leftovers guard;
    const scratch_cgroup place;
    if (!place)
        return;
    for (const int error : {EPERM, EACCES, EROFS, ENOSYS}) {
        CAPTURE(error);
        CHECK(end_where_removal_fails(place, error) == 1);
        CHECK(place.cgroups().size() == 1);
        start::end_orphaned_cgroups(place.path());
        CHECK(place.cgroups().empty());
    }
}

TEST_CASE("group cgroups: another cgroup at the same path is neither killed nor removed") {
    const no_leftovers guard;
    const scratch_cgroup place;
    if (!place)
        return;
    auto made = make_in(place);
    REQUIRE(made.cgroup);
    const auto path = made.cgroup->path();
    REQUIRE(::rmdir(path.c_str()) == 0);
    REQUIRE(::mkdir(path.c_str(), 0755) == 0);
    SUBCASE("with a process in it") {
        const inhabitant stranger(path);
        CHECK(made.cgroup->end());
        CHECK(stranger.lives());
    }
    SUBCASE("empty") {
        CHECK(made.cgroup->end());
        CHECK(exists(path));
    }
}

TEST_CASE("group cgroups: where none can be made, the error names the directory") {
    start::group_cgroups maker([] {
        start::cgroup_probe found;
        found.found.best = true;
        found.directory = "/proc/self";
        return found;
    });
    start::wanted_limits wanted;
    wanted.controllers = {"memory"};
    const auto made = maker.make({}, wanted);
    CHECK_FALSE(made.cgroup);
    CHECK(made.error);
    CHECK(made.text == "cgroup in /proc/self");
    CHECK_FALSE(maker.make({}).error);
}

TEST_CASE("group cgroups: nested cgroups are removed with it, after their processes are killed") {
    const no_leftovers guard;
    const scratch_cgroup place;
    if (!place)
        return;
    auto made = make_in(place);
    REQUIRE(made.cgroup);
    const auto path = made.cgroup->path();
    std::filesystem::create_directories(path + "/a/b");
    std::filesystem::create_directories(path + "/c");
    {
        const inhabitant child(path + "/a/b");
        CHECK_FALSE(made.cgroup->end());
        CHECK(child.is_killed());
    }
    start::await_empty_cgroup(made.cgroup->directory(), std::chrono::milliseconds(bound_ms));
    CHECK(made.cgroup->end());
    CHECK_FALSE(exists(path));
}

TEST_CASE("group cgroups: a probe that hangs holds up its own start only") {
    std::promise<void> begun;
    std::promise<void> let_go;
    start::group_cgroups maker([&] {
        begun.set_value();
        let_go.get_future().wait();
        return start::cgroup_probe();
    });
    std::thread first([&] { (void)maker.make({}); });
    begun.get_future().wait();
    CHECK_FALSE(maker.make({}).cgroup);
    let_go.set_value();
    first.join();
}

TEST_CASE("group cgroups: a start waits for the probe that another one has begun") {
    const no_leftovers guard;
    const scratch_cgroup place;
    if (!place)
        return;
    std::promise<void> begun;
    int probes = 0;
    start::group_cgroups maker([&] {
        ++probes;
        begun.set_value();
        start::cgroup_probe found;
        found.found.best = true;
        found.directory = place.path();
        return found;
    });
    start::group_cgroups::make_result others;
    std::thread first([&] { others = maker.make({}); });
    begun.get_future().wait();
    const auto own = maker.make({});
    first.join();
    CHECK(own.cgroup);
    CHECK(others.cgroup);
    CHECK(probes == 1);
}

}  // namespace group_cgroups_test
