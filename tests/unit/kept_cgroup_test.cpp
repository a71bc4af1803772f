// SPDX-License-Identifier: BSL-1.0
// Cgroups of groups that have ended, kept for the next groups.
#include "cgroup/group_cgroups.hpp"
#include "cgroup_support.hpp"

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

namespace kept_cgroup_test {

using namespace cohort;
using namespace cohort::test;

namespace {

constexpr cgroups::cgroup_guard guard_of_case{1, {orders::guarded::cgroup, 0, 1000}};

/// Where the cgroups of a case are made.
class maker {
public:
    explicit maker(const scratch_cgroup& place)
        : cgroups_([path = place.path()] {
              return cgroups::cgroup_probe{{true, {}}, path, {}};
          }) {}

    /// As the start of a group makes it.
    std::shared_ptr<cgroups::group_cgroup> make(cgroups::cgroup_guard guard = guard_of_case) {
        auto made = cgroups_.make({}, guard);
        REQUIRE(made.owned);
        if (!made.owned->reusable())
            made.owned->allow_reuse(guard);
        return std::move(made.owned);
    }
    /// Makes one and keeps it. @return its path
    std::string make_and_keep(cgroups::cgroup_guard guard = guard_of_case) {
        auto made = make(guard);
        auto path = made->path();
        CHECK(kept().keep(std::move(made)) == nullptr);
        return path;
    }
    cgroups::kept_cgroups& kept() { return cgroups_.kept(); }

private:
    cgroups::group_cgroups cgroups_;
};

/// Whether a kernel's controller, such as memory, is on in the cgroups of the case: those are not kept.
bool are_never_kept(const scratch_cgroup& place) {
    std::string controllers;
    std::ifstream(place.path() + "/cgroup.subtree_control") >> controllers;
    return !controllers.empty();
}

}  // namespace

TEST_CASE("kept cgroup: the next group gets the one that an earlier group has left") {
    const no_leftovers guard;
    const scratch_cgroup place;
    if (!place || are_never_kept(place))
        return;
    maker groups(place);
    const auto path = groups.make_and_keep();
    CHECK(exists(path));
    const auto next = groups.make();
    CHECK(next->path() == path);
    CHECK(groups.make()->path() != path);
}

TEST_CASE("kept cgroup: one in which anything lives is not kept") {
    const no_leftovers guard;
    const scratch_cgroup place;
    if (!place || are_never_kept(place))
        return;
    maker groups(place);
    auto made = groups.make();
    auto* const cgroup = made.get();
    SUBCASE("in it") {
        const inhabitant child(made->path());
        CHECK(groups.kept().keep(std::move(made)).get() == cgroup);
    }
    SUBCASE("below it") {
        std::filesystem::create_directory(made->path() + "/inner");
        const inhabitant child(made->path() + "/inner");
        made = groups.kept().keep(std::move(made));
        CHECK(made.get() == cgroup);
    }
}

TEST_CASE("kept cgroup: one that is not as it was when it was new is removed") {
    const no_leftovers guard;
    const scratch_cgroup place;
    if (!place || are_never_kept(place))
        return;
    maker groups(place);
    const auto path = groups.make_and_keep();
    SUBCASE("a cgroup is in it") { REQUIRE(::mkdir((path + "/inner").c_str(), 0755) == 0); }
    SUBCASE("a cgroup was in it") {
        REQUIRE(::mkdir((path + "/inner").c_str(), 0755) == 0);
        REQUIRE(::rmdir((path + "/inner").c_str()) == 0);
    }
    SUBCASE("it is frozen") { std::ofstream(path + "/cgroup.freeze") << "1" << std::flush; }
    SUBCASE("it is open to others") { REQUIRE(::chmod(path.c_str(), 0777) == 0); }
    SUBCASE("it was given to another user") {
        if (::geteuid() != 0)
            return;
        REQUIRE(::chown(path.c_str(), 1, 1) == 0);
    }
    SUBCASE("somebody has removed it") { REQUIRE(::rmdir(path.c_str()) == 0); }
    CHECK(groups.make()->path() != path);
    CHECK_FALSE(exists(path));
}

TEST_CASE("kept cgroup: what has entered one that nobody uses is killed") {
    const no_leftovers guard;
    const scratch_cgroup place;
    if (!place || are_never_kept(place))
        return;
    maker groups(place);
    const auto path = groups.make_and_keep();
    {
        const inhabitant visitor(path);
        SUBCASE("by the next group, which gets another one") {
            CHECK(groups.make()->path() != path);
        }
        SUBCASE("at the end") { groups.kept().end_all(); }
        CHECK(visitor.is_killed());
    }
    groups.kept().end_all();
    CHECK_FALSE(exists(path));
}

TEST_CASE("kept cgroup: only a group that the guardian would end in the same way gets it") {
    const no_leftovers guard;
    const scratch_cgroup place;
    if (!place || are_never_kept(place))
        return;
    maker groups(place);
    const auto path = groups.make_and_keep();
    auto other = guard_of_case;
    SUBCASE("another grace period: it is kept for those who have this one") {
        other.message.grace_ms = 5;
        CHECK(groups.make(other)->path() != path);
        CHECK(groups.make()->path() == path);
    }
    SUBCASE("another guardian: it is removed") {
        other.guardian = 2;
        CHECK(groups.make(other)->path() != path);
        CHECK_FALSE(exists(path));
    }
}

TEST_CASE("kept cgroup: there are a few at most, the oldest one goes") {
    const no_leftovers guard;
    const scratch_cgroup place;
    if (!place || are_never_kept(place))
        return;
    maker groups(place);
    std::vector<std::shared_ptr<cgroups::group_cgroup>> live;
    for (std::size_t i = 0; i <= cgroups::kept_cgroups::most; ++i)
        live.push_back(groups.make());
    const auto* const oldest = live.front().get();
    for (std::size_t i = 0; i < cgroups::kept_cgroups::most; ++i)
        CHECK(groups.kept().keep(std::move(live[i])) == nullptr);
    CHECK(groups.kept().keep(std::move(live.back())).get() == oldest);
    CHECK(place.cgroups().size() == cgroups::kept_cgroups::most);
}

TEST_CASE("kept cgroup: at the end all are removed, and no further one is kept") {
    const no_leftovers guard;
    const scratch_cgroup place;
    if (!place || are_never_kept(place))
        return;
    maker groups(place);
    auto live = groups.make();
    groups.make_and_keep();
    groups.make_and_keep();
    groups.kept().end_all();
    CHECK(place.cgroups().size() == 1);
    CHECK(groups.kept().keep(std::move(live)) != nullptr);
}

TEST_CASE("kept cgroup: another process neither gets nor removes it") {
    const no_leftovers guard;
    const scratch_cgroup place;
    if (!place || are_never_kept(place))
        return;
    maker groups(place);
    const auto path = groups.make_and_keep();
    CHECK(in_fork([&] {
              maker others(place);  // it looks for what others have left, too
              return others.make()->path() != path ? 0 : 1;
          }) == 0);
    CHECK(groups.make()->path() == path);
}

}  // namespace kept_cgroup_test
