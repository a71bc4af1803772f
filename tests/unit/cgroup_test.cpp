// SPDX-License-Identifier: BSL-1.0
#include "cgroup_support.hpp"
#include "one_start.hpp"
#include "start/cgroup/cgroup.hpp"
#include "start/cgroup/group_cgroups.hpp"
#include "start/cgroup/worker_cgroup.hpp"

#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

namespace cgroup_test {

using namespace cohort;
using namespace cohort::test;

namespace {

/// Holds a cgroup as its owner does, through one descriptor or a copy of it.
base::unique_fd owner_of(const std::string& path) {
    base::unique_fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    REQUIRE(::flock(directory.get(), LOCK_EX | LOCK_NB) == 0);
    return base::unique_fd(::fcntl(directory.get(), F_DUPFD_CLOEXEC, 3));
}

}  // namespace

TEST_CASE("cgroup: cgroups whose owners are gone are removed, all others stay") {
    const no_leftovers guard;
    const scratch_cgroup place;
    if (!place)
        return;
    const auto left = place.make("cohort-2-1");
    const auto left_in_it = left + "/nested";
    REQUIRE(::mkdir(left_in_it.c_str(), 0755) == 0);
    const auto left_empty = place.make("cohort-2-2-free");
    const auto left_free = place.make("cohort-2-3-free");
    const auto owned = place.make("cohort-2-4");
    const auto owner = owner_of(owned);
    const inhabitant orphan(left_in_it);
    const inhabitant survivor(left_free);
    const std::vector<std::string> strangers = {
        place.make("cohort"),       place.make("cohort-of-somebody"), place.make("cohort-02-4"),
        place.make("cohort-2-4-x"), place.make("xcohort-2-4"),        place.make("cohort-2")};

    start::end_orphaned_cgroups(place.path());
    CHECK(orphan.is_killed());
    CHECK_FALSE(exists(left));
    CHECK_FALSE(exists(left_empty));
    CHECK(survivor.lives());
    CHECK(exists(left_free));
    CHECK(exists(owned));
    for (const auto& stays : strangers)
        CHECK(exists(stays));
}

TEST_CASE("cgroup: cgroups are removed at any depth, and stay while a process lives in one") {
    const no_leftovers guard;
    const scratch_cgroup place;
    if (!place)
        return;
    const auto path = place.make("nested");
    const auto directory = opened(path);
    auto deepest = path;
    for (int level = 0; level < 200; ++level) {
        REQUIRE(::mkdir((deepest + "/z").c_str(), 0755) == 0);
        deepest += "/a";
        REQUIRE(::mkdir(deepest.c_str(), 0755) == 0);
    }
    {
        const inhabitant child(deepest);
        CHECK(start::remove_cgroup(directory.get(), "nested") ==
              std::errc::device_or_resource_busy);
        CHECK(exists(deepest));
        CHECK(child.lives());
        CHECK_FALSE(start::kill_cgroup(directory.get()));
        CHECK(child.is_killed());
    }
    start::await_empty_cgroup(directory.get(), std::chrono::milliseconds(bound_ms));
    CHECK(remove_whole(path, "nested") == std::error_code());
    CHECK_FALSE(exists(path));
}

TEST_CASE("cgroup: without cgroup.kill what is listed is killed, below it too") {
    const no_leftovers guard;
    const scratch_cgroup place;
    if (!place)
        return;
    const auto inner = place.make("inner");
    const inhabitant first(place.path());
    const inhabitant second(inner);
    CHECK_FALSE(start::kill_listed(opened(place.path()).get()));
    CHECK(first.is_killed());
    CHECK(second.is_killed());
}

TEST_CASE(
    "cgroup: a group's cgroup is made, holds its children, and is removed when they are killed") {
    const no_leftovers guard;
    const scratch_cgroup place;
    if (!place)
        return;
    start::group_cgroups maker;
    detail::group_settings settings;
    settings.cgroup_directory = place.path();
    const auto made = maker.make(settings);
    REQUIRE_FALSE(made.error);
    REQUIRE(made.cgroup);
    const auto path = made.cgroup->path();
    const inhabitant child(path);
    CHECK_FALSE(made.cgroup->end());
    CHECK(child.is_killed());
    start::await_empty_cgroup(opened(path).get(), std::chrono::milliseconds(bound_ms));
    CHECK(made.cgroup->end());
    CHECK_FALSE(exists(path));
    CHECK(made.cgroup->end());  // again
}

TEST_CASE("cgroup: end_if_empty removes an empty cgroup, and leaves all others as they are") {
    const no_leftovers guard;
    const scratch_cgroup place;
    if (!place)
        return;
    start::group_cgroups maker;
    detail::group_settings settings;
    settings.cgroup_directory = place.path();
    const auto empty = maker.make(settings).cgroup;
    const auto inhabited = maker.make(settings).cgroup;
    const auto with_inner = maker.make(settings).cgroup;
    const auto replaced = maker.make(settings).cgroup;
    REQUIRE((empty && inhabited && with_inner && replaced));
    const auto path = empty->path();
    CHECK(empty->end_if_empty());
    CHECK_FALSE(exists(path));
    CHECK(empty->end_if_empty());  // again
    CHECK(empty->end());
    {
        const inhabitant child(inhabited->path());
        CHECK_FALSE(inhabited->end_if_empty());
        CHECK(child.lives());
    }
    const auto inner = with_inner->path() + "/inner";
    REQUIRE(::mkdir(inner.c_str(), 0755) == 0);
    CHECK_FALSE(with_inner->end_if_empty());
    CHECK(exists(inner));
    // Another process has taken its name.
    const auto others = replaced->path();
    REQUIRE(::rmdir(others.c_str()) == 0);
    REQUIRE(::mkdir(others.c_str(), 0755) == 0);
    CHECK(replaced->end_if_empty());
    CHECK(exists(others));
    REQUIRE(::rmdir(others.c_str()) == 0);
}

TEST_CASE("cgroup: a forked copy of its owner does not remove a cgroup") {
    const no_leftovers guard;
    const scratch_cgroup place;
    if (!place)
        return;
    start::group_cgroups maker;
    detail::group_settings settings;
    settings.cgroup_directory = place.path();
    auto made = maker.make(settings);
    REQUIRE(made.cgroup);
    const auto path = made.cgroup->path();
    CHECK(in_fork([&] {
              made.cgroup.reset();
              return exists(path) ? 0 : 1;
          }) == 0);
    made.cgroup.reset();
    CHECK_FALSE(exists(path));
}

TEST_CASE("cgroup: a directory of another file system is refused") {
    std::error_code error;
    CHECK_FALSE(start::open_cgroup("/proc", error));
    CHECK(error == std::errc::not_supported);
    CHECK_FALSE(start::open_cgroup("/nowhere", error));
    CHECK(error == std::errc::no_such_file_or_directory);
}

TEST_CASE("cgroup: where no cgroup can be made automatic means none, and the probe says why") {
    const auto here = start::probe_cgroups().found;
    if (!here.best)
        return cohort::test::skip(here.reason);
    struct denial {
        long number;
        int error;
        const char* reason;
    };
    for (const denial& d : {denial{SYS_mkdir, EACCES, "Permission denied"},
                            denial{SYS_mkdir, EROFS, "Read-only file system"},
                            denial{SYS_flock, ENOSYS, "Function not implemented"},
                            denial{SYS_flock, EWOULDBLOCK, "Resource temporarily unavailable"},
                            denial{SYS_faccessat2, EPERM, "Operation not permitted"},
                            denial{SYS_faccessat2, ENOENT, "No such file or directory"},
                            denial{SYS_clone3, EPERM, "Operation not permitted"}}) {
        CAPTURE(d.reason);
        CHECK(in_fork([&] {
                  // The tier of the start was found before the filter came.
                  if (!base::current_tiers().clone3.best || !deny(d.number, d.error))
                      return base::current_tiers().clone3.best ? 1 : 0;
                  const auto choice = start::probe_cgroups().found;
                  if (choice.best || !choice.reason.ends_with(d.reason))
                      return 2;
                  start::group_cgroups maker;
                  const auto made = maker.make({});
                  return !made.cgroup && !made.error ? 0 : 3;
              }) == 0);
    }
}

TEST_CASE("cgroup: by every start method a child is in its cgroup before its program runs") {
    const no_leftovers guard;
    const scratch_cgroup place;
    if (!place)
        return;
    std::error_code error;
    const auto path = place.make("leaf");
    const auto opened = start::open_cgroup(path, error);
    REQUIRE_FALSE(error);
    for (const bool clone3 : {true, false})
        for (const bool close_range : {true, false}) {
            CAPTURE(clone3);
            CAPTURE(close_range);
            auto cat = launch({"/bin/cat", "/proc/self/cgroup"});
            cat.order.cgroup = opened.get();
            cat.order.cgroup_is_needed = true;
            CHECK(cat.run({clone3, close_range}).failed == start::stage::none);
            CHECK(cat.output.find("/leaf\n") != std::string::npos);
        }
}

TEST_CASE("cgroup: workers are born in cgroups of their own, which end with their group's") {
    const no_leftovers guard;
    const scratch_cgroup place;
    if (!place)
        return;
    start::group_cgroups maker;
    detail::group_settings settings;
    settings.cgroup_directory = place.path();
    auto group = maker.make(settings).cgroup;
    REQUIRE(group);
    // Without the controller too there can be cgroups in a cgroup, but nobody wants them.
    CHECK(start::cgroups_in(group->directory()).empty());
    std::error_code error;
    std::vector<std::string> names;
    for (const auto& tier : all_tiers) {
        CAPTURE(tier.name);
        base::unique_fd directory;
        const auto own =
            start::worker_cgroup::make(group, static_cast<int>(names.size()), directory, error);
        REQUIRE_FALSE(error);
        names.push_back(own->name());
        auto cat = launch({"/bin/cat", "/proc/self/cgroup"});
        cat.order.cgroup = directory.get();
        cat.order.cgroup_is_needed = true;
        CHECK(cat.run(tier.tier).failed == start::stage::none);
        CHECK(cat.output.find("/worker-" + std::to_string(names.size() - 1) + "\n") !=
              cat.output.npos);
    }
    const auto path = group->path();
    const inhabitant first(path + "/" + names.front());
    const inhabitant last(path + "/" + names.back());
    CHECK_FALSE(group->end());
    CHECK(first.is_killed());
    CHECK(last.is_killed());
    start::await_empty_cgroup(opened(path).get(), std::chrono::milliseconds(bound_ms));
    CHECK(group->end());
    CHECK_FALSE(exists(path));
}

TEST_CASE("cgroup: that of a worker goes with it, or with a later one if a process is left in it") {
    const no_leftovers guard;
    const scratch_cgroup place;
    if (!place)
        return;
    start::group_cgroups maker;
    detail::group_settings settings;
    settings.cgroup_directory = place.path();
    auto group = maker.make(settings).cgroup;
    REQUIRE(group);
    std::error_code error;
    base::unique_fd first, other;
    const auto busy = start::worker_cgroup::make(group, 0, first, error);
    const auto empty = start::worker_cgroup::make(group, 1, other, error);
    const auto last = start::worker_cgroup::make(group, 2, other, error);
    REQUIRE(last);
    {
        const inhabitant left(group->path() + "/" + busy->name());
        busy->remove_if_empty();
        empty->remove_if_empty();
        CHECK(exists(group->path() + "/" + busy->name()));
        CHECK_FALSE(exists(group->path() + "/" + empty->name()));
    }
    start::await_empty_cgroup(first.get(), std::chrono::milliseconds(bound_ms));
    CHECK(exists(group->path() + "/" + busy->name()));
    last->remove_if_empty();
    CHECK(start::cgroups_in(group->directory()).empty());
    CHECK(group->end());
}

TEST_CASE("cgroup: a cgroup that cannot be entered fails a start that needs it, and no other") {
    const no_leftovers guard;
    const base::unique_fd no_cgroup(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (const bool clone3 : {true, false})
        for (const bool needed : {true, false}) {
            auto nothing = launch({"/bin/true"});
            nothing.order.cgroup = no_cgroup.get();
            nothing.order.cgroup_is_needed = needed;
            const auto& result = nothing.run({clone3, true});
            CHECK(result.failed == (needed ? start::stage::cgroup : start::stage::none));
            CHECK(result.error == (needed ? ENOENT : 0));
        }
}

}  // namespace cgroup_test
