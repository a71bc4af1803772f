// SPDX-License-Identifier: BSL-1.0
#include "loop/runtime/runtime.hpp"

#include "base/values/group_end.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"
#include "sys_support.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace freed_aside_test {

using namespace cohort;
using namespace cohort::test;

namespace {

/// Says which thread has destroyed it.
struct tells {
    std::promise<std::thread::id>& where;
    bool small;
    tells(std::promise<std::thread::id>& to, bool is_small) : where(to), small(is_small) {}
    tells(const tells&) = delete;
    tells& operator=(const tells&) = delete;
    ~tells() { where.set_value(std::this_thread::get_id()); }

    friend bool is_small(const tells& one) noexcept { return one.small; }
};

/// Whether another thread destroys what the engine's thread lets go of.
bool is_freed_by_another(bool small) {
    auto& loop = loop::runtime::for_spawn().loop();
    std::promise<std::thread::id> destroyed;
    std::promise<std::thread::id> here;
    loop.post([&] {
        loop::make_freed_aside<tells>(destroyed, small).reset();
        here.set_value(std::this_thread::get_id());
    });
    return destroyed.get_future().get() != here.get_future().get();
}

detail::ended_worker with_result(std::size_t bytes) {
    outcome left;
    detail::outcome_access::result(left) = std::make_shared<const detail::result_bytes>(
        detail::result_bytes{"bytes", std::vector<std::byte>(bytes)});
    detail::ended_worker worker;
    worker.left = std::make_shared<const outcome>(std::move(left));
    return worker;
}

}  // namespace

TEST_CASE("freed aside: another thread destroys what the engine's thread lets go of last") {
    if (under_tsan)
        return skip(no_threads_in_copies);
    CHECK(in_fork([] {
              return is_freed_by_another(false) && !is_freed_by_another(true) ? 0 : 1;
          }) == 0);
}

TEST_CASE("freed aside: any other thread destroys it itself") {
    std::promise<std::thread::id> destroyed;
    loop::make_freed_aside<tells>(destroyed, false).reset();
    CHECK(destroyed.get_future().get() == std::this_thread::get_id());
}

TEST_CASE("freed aside: a worker that has left a large result or much text is not small") {
    CHECK(is_small(detail::ended_worker()));
    CHECK(is_small(with_result(100)));
    CHECK_FALSE(is_small(with_result(100'000)));
    auto prints = with_result(0);
    prints.out.head = shared_text(std::string(100'000, 'x'));
    CHECK_FALSE(is_small(prints));
    std::vector<std::shared_ptr<const detail::ended_worker>> all;
    all.push_back(std::make_shared<const detail::ended_worker>(with_result(100'000)));
    CHECK_FALSE(is_small(detail::group_end(std::move(all))));
    CHECK(is_small(detail::group_end({})));
}

}  // namespace freed_aside_test
