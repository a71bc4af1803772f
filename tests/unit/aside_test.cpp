// SPDX-License-Identifier: BSL-1.0
// What the engine's thread leaves to others. An engine never ends: each has its own process.
#include "cgroup_support.hpp"
#include "group/supervisor/cgroup_end.hpp"
#include "group/supervisor/oom_look.hpp"
#include "loop/threads/background_thread.hpp"
#include "scratch.hpp"
#include "start/cgroup/group_cgroups.hpp"
#include "start/cgroup/worker_cgroup.hpp"

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <sys/syscall.h>

namespace aside_test {

using namespace cohort;
using namespace cohort::test;
using loop::background_thread;

namespace {

struct sides {
    loop::engine& loop = *new loop::engine;
    background_thread& stays = *new background_thread(loop, background_thread::thread::stays);
    background_thread& comes = *new background_thread(loop);

    sides() { loop.start(); }
    /// Runs it on the engine's thread, and waits until it has called what it is given.
    template <class Body>
    bool run(Body body) {
        auto over = std::make_shared<std::promise<void>>();
        loop.post([body, over] { body([over] { over->set_value(); }); });
        return over->get_future().wait_for(std::chrono::milliseconds(bound_ms)) ==
               std::future_status::ready;
    }
};

}  // namespace

TEST_CASE("aside: the permanent thread does all work, in order") {
    CHECK(in_fork([] {
              sides s;
              std::thread::id first;
              std::string order;
              const auto work = [&](char name) {
                  return [&, name] {
                      if (order.empty())
                          first = std::this_thread::get_id();
                      order += std::this_thread::get_id() == first ? name : 'x';
                  };
              };
              if (!s.run([&](auto over) { s.stays.run(work('a'), over); }))
                  return 1;
              if (!s.run([&](auto over) {
                      s.stays.run(work('b'), [] {});
                      s.stays.run(work('c'), over);
                  }))
                  return 2;
              return order == "abc" ? 0 : 3;
          }) == 0);
}

TEST_CASE("aside: what the work owns is destroyed before the engine goes on") {
    CHECK(in_fork([] {
              sides s;
              bool alone = false;
              if (!s.run([&](auto over) {
                      auto held = std::make_shared<int>();
                      s.comes.run([held] {},
                                  [&alone, over, weak = std::weak_ptr(held)] {
                                      alone = weak.expired();
                                      over();
                                  });
                  }))
                  return 1;
              return alone ? 0 : 2;
          }) == 0);
}

TEST_CASE("aside: without a new thread the work is left out unless the permanent thread exists") {
    CHECK(in_fork([] {
              sides s;
              if (!s.stays.start() || s.comes.is_late(std::chrono::steady_clock::now()))
                  return 1;
              int done = 0;
              const auto works = [&] { ++done; };
              const auto denied = [] {
                  return deny(SYS_clone3, ENOSYS) && deny(SYS_clone, EAGAIN);
              };
              if (!denied() || s.comes.start())
                  return 2;
              if (!s.run([&](auto over) { denied() ? s.comes.run(works, over) : void(); }) ||
                  done != 0)
                  return 3;
              if (!s.run([&](auto over) { s.stays.run(works, over); }) || done != 1)
                  return 4;
              return s.stays.start() ? 0 : 5;
          }) == 0);
}

TEST_CASE("aside: removing a group's cgroup does not occupy the engine's thread") {
    const no_leftovers guard;
    const scratch_cgroup place;
    if (!place)
        return;
    CHECK(in_fork([&] {
              sides s;
              detail::group_settings settings;
              settings.cgroup_directory = place.path();
              const auto cgroup = start::group_cgroups().make(settings).cgroup;
              if (!cgroup || !s.stays.start())
                  return 1;
              const auto path = cgroup->path();
              const inhabitant child(path);
              if (!s.run([&](auto over) {
                      for (const long number : {SYS_rmdir, SYS_unlinkat, SYS_openat, SYS_open})
                          if (!deny(number, EPERM))
                              return;
                      groups::end_cgroup(s.loop, s.stays, cgroup, loop::time_point::max(), over);
                  }))
                  return 2;
              return exists(path) || !child.is_killed() ? 3 : 0;
          }) == 0);
    CHECK(place.cgroups().empty());
}

TEST_CASE("aside: the end of a cgroup is reported in time even if the cgroup stays") {
    const no_leftovers guard;
    const scratch_cgroup place;
    if (!place)
        return;
    CHECK(in_fork([&] {
              sides s;
              detail::group_settings settings;
              settings.cgroup_directory = place.path();
              const auto cgroup = start::group_cgroups().make(settings).cgroup;
              // The thread that stays comes from this one, and so has its filter.
              if (!cgroup || !deny(SYS_unlinkat, EIO) || !deny(SYS_rmdir, EIO) || !s.stays.start())
                  return 1;
              for (const auto wait : {0, 20}) {
                  const auto until =
                      std::chrono::steady_clock::now() + std::chrono::milliseconds(wait);
                  if (!s.run([&](auto over) {
                          groups::end_cgroup(s.loop, s.stays, cgroup, until, over);
                      }))
                      return 2;
                  if (std::chrono::steady_clock::now() < until)
                      return 3;
              }
              ::_exit(exists(cgroup->path()) ? 0 : 4);
          }) == 0);
    start::end_orphaned_cgroups(place.path());
}

TEST_CASE("aside: a cgroup whose removal hangs does not hold up the group") {
    CHECK(in_fork([] {
              sides s;
              cohort::test::scratch_directory scratch;
              const auto path = scratch.file("cgroup");
              std::filesystem::create_directory(path);
              const auto cgroup =
                  std::make_shared<start::group_cgroup>(path, opened(path), ::getpid());
              const auto now = std::chrono::steady_clock::now();
              const auto hang = std::make_shared<std::promise<void>>();
              const bool told = s.run([&](auto over) {
                  s.stays.run([hang] { hang->get_future().wait(); }, [] {});
                  groups::end_cgroup(s.loop, s.stays, cgroup, now, over);
              });
              ::rmdir(path.c_str());
              return told ? 0 : 1;
          }) == 0);
}

TEST_CASE("aside: reading a worker's cgroup does not occupy the engine's thread") {
    const no_leftovers guard;
    CHECK(in_fork([] {
              sides s;
              cohort::test::scratch_directory scratch;
              const auto path = scratch.file("cgroup");
              std::filesystem::create_directories(path + "/worker-0");
              (void)scratch.write("cgroup/worker-0/memory.events", "oom_kill 1\n");
              const auto group =
                  std::make_shared<start::group_cgroup>(path, opened(path), ::getpid());
              const auto own = std::make_shared<const start::worker_cgroup>(group, "worker-0");
              if (!s.stays.start())
                  return 1;
              bool found = false;
              if (!s.run([&](auto over) {
                      if (!deny(SYS_openat, EPERM) || !deny(SYS_open, EPERM))
                          return;
                      groups::find_oom_kill(s.loop, s.stays, own, [&found, over](auto kill) {
                          found = kill.has_value();
                          over();
                      });
                  }))
                  return 2;
              std::filesystem::remove_all(path);
              return found ? 0 : 3;
          }) == 0);
}

}  // namespace aside_test
