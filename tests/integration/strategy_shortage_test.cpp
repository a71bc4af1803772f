// SPDX-License-Identifier: BSL-1.0
// The strategy file_system in a process that lacks something when it asks for the first time. Each
// worker here is such a process, because it is executed: nobody in it has asked before.
#include "group_test.hpp"
#include "methods.hpp"
#include "names_support.hpp"
#include "sanitizers.hpp"
#include "start_support.hpp"

#include <cohort/cohort.hpp>

#include <doctest/doctest.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

namespace strategy_shortage_test {

using namespace cohort::test;
using cohort::shared_array;
using cohort::sharing_strategy;

namespace {

bool has_names() {
    return cohort::get_all_sharing_strategies().contains(sharing_strategy::file_system);
}
bool can_make_named() {
    const auto how = cohort::share_options().strategy(sharing_strategy::file_system);
    return shared_array<int>(how, 100).strategy() == sharing_strategy::file_system;
}
/// The error of set_sharing_strategy(); 0: none.
int error_of_choice() {
    try {
        cohort::set_sharing_strategy(sharing_strategy::file_system);
    } catch (const cohort::sharing_error& e) {
        return e.code().value();
    }
    return 0;
}

/// What a worker has seen during a shortage and after it.
using seen = std::vector<int>;

template <class Take, class GiveBack>
seen seen_by(Take take, GiveBack give_back) {
    if (!take())
        return {};
    const int during = has_names();
    const int error = error_of_choice();
    give_back();
    return {during, error, has_names(), error_of_choice(), can_make_named()};
}

seen without_descriptors(int) {
    std::vector<int> taken;
    return seen_by(
        [&] {
            const rlimit few{64, 64};
            ::setrlimit(RLIMIT_NOFILE, &few);
            for (int fd; (fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;)
                taken.push_back(fd);
            return errno == EMFILE;
        },
        [&] {
            for (const int fd : taken)
                ::close(fd);
        });
}

/// In a mount namespace of its own, whose /dev/shm is small.
bool mount_small_shm() {
    return ::unshare(CLONE_NEWNS) == 0 &&
           ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           ::mount("none", "/dev/shm", "tmpfs", 0, "size=1m,mode=1777") == 0;
}
seen with_full_shm(int) {
    static constexpr char all_of_it[] = "/dev/shm/full";
    return seen_by(
        [] {
            if (!mount_small_shm())
                return false;
            const int file = ::open(all_of_it, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
            const std::string block(4096, 'x');
            while (::write(file, block.data(), block.size()) > 0) {
            }
            const bool is_full = errno == ENOSPC;
            ::close(file);
            return is_full;
        },
        [] { ::unlink(all_of_it); });
}

seen without_address_space(int) {
    rlimit before{};
    ::getrlimit(RLIMIT_AS, &before);
    return seen_by(
        [&] {
            const rlimit none{0, before.rlim_max};
            return ::setrlimit(RLIMIT_AS, &none) == 0;
        },
        [&] { ::setrlimit(RLIMIT_AS, &before); });
}

template <auto Worker>
seen asked_in_a_worker() {
    const leak_guard guard;
    const auto report = ended(cohort::function<Worker>(),
                              cohort::options(1).start_method(cohort::start_method::spawn));
    CHECK_MESSAGE(report.success(), fmt::format("{}", report));
    return report.outcomes.at(0).template result<seen>();
}

bool has_asked_before() {
    if (default_method() != cohort::start_method::fork)
        return false;
    skip("a copy of this process has its answers");
    return true;
}

/// A strategy that was not there, with this error, and then was.
seen back_again(int error) { return {0, error, 1, 0, 1}; }

}  // namespace

TEST_CASE("strategy shortage: without descriptors names are not there, and then they are") {
    if (names_are_denied() || has_asked_before())
        return;
    CHECK((asked_in_a_worker<without_descriptors>() == back_again(ENOTSUP)));
}

TEST_CASE("strategy shortage: while /dev/shm is full names are not there, and then they are") {
    if (names_are_denied() || has_asked_before())
        return;
    const auto found = asked_in_a_worker<with_full_shm>();
    if (found.empty())
        return skip("a mount namespace of its own needs rights");
    CHECK((found == back_again(ENOTSUP)));
}

TEST_CASE("strategy shortage: without address space names are not there, and then they are") {
    if (under_asan || under_tsan)
        return skip(sanitizer_needs_memory);
    if (names_are_denied() || has_asked_before())
        return;
    CHECK((asked_in_a_worker<without_address_space>() == back_again(ENOTSUP)));
}

}  // namespace strategy_shortage_test
