// SPDX-License-Identifier: BSL-1.0
// A host that has run groups, so that it keeps a cgroup for the next one.
//   keeping_host exit | wait | fork
// "exit" ends when it has; "wait" writes a byte to
// descriptor 9 and waits for ever; "fork" does the same as "exit" in a copy of itself as well. Ends with
// 0 when all was as it must be.
#include "procfs.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>

#include <cstdio>
#include <exception>
#include <set>
#include <string>
#include <string_view>

#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr int ready_fd = 9;

using names = std::set<std::string>;

void check(bool is_so, const char* fact) {
    if (is_so)
        return;
    std::fprintf(stderr, "keeping_host: not so: %s\n", fact);
    ::_exit(1);
}

asio::awaitable<void> run_true() { (void)co_await cohort::run(cohort::command("true"), 1); }

names run_one_group() {
    asio::io_context context;
    asio::co_spawn(context, run_true(), [](std::exception_ptr error) {
        if (error)
            std::terminate();
    });
    context.run();
    return cohort::test::leaves_of(::getpid());
}

/// Two groups, one after the other, in the same cgroup.
names run_two_groups() {
    auto first = run_one_group();
    check(first.size() == 1, "the cgroup of the first group is kept");
    check(run_one_group() == first, "the second group has had the same cgroup");
    return first;
}

void run_in_copy(const names& of_parent) {
    const pid_t parent = ::getpid();
    const pid_t copy = ::fork();
    if (copy == 0) {
        run_two_groups();
        check(cohort::test::leaves_of(parent) == of_parent, "the copy leaves its parent's cgroup");
        std::exit(0);
    }
    int status = 0;
    check(::waitpid(copy, &status, 0) == copy && status == 0, "the copy ends with 0");
    check(cohort::test::leaves_of(copy).empty(), "the copy has removed its cgroup");
    check(run_one_group() == of_parent, "the parent has kept its cgroup");
}

}  // namespace

int main(int argc, char** argv) {
    cohort::worker_main(argc, argv);
    const std::string_view how = argc > 1 ? argv[1] : "";
    const auto kept = run_two_groups();
    if (how == "fork")
        run_in_copy(kept);
    if (how != "wait")
        return 0;
    (void)!::write(ready_fd, "\n", 1);
    for (;;)
        ::pause();
}
