// SPDX-License-Identifier: BSL-1.0
// A host with rights that the user who executes it may not have.
//   privileged_host as USER PROGRAM ...  becomes that user and executes a program
//   privileged_host WHAT METHOD          changes its user as WHAT says and starts a function worker
//                                        by METHOD. Prints what facts() gives in the worker, or
//                                        where and why the start failed.
// WHAT is
//   drop    becomes the real user and group for good
//   take    becomes the effective user and group for good
//   keep    changes nothing
//   toggle  becomes nobody for a while, as the effective user only
#include "confinement.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>

#include <sys/prctl.h>
#include <unistd.h>

namespace privileged_host {
namespace {

struct identity {
    uid_t user[3] = {};  // real, effective, saved
    gid_t group[3] = {};

    static identity now() {
        identity ids;
        ::getresuid(&ids.user[0], &ids.user[1], &ids.user[2]);
        ::getresgid(&ids.group[0], &ids.group[1], &ids.group[2]);
        return ids;
    }
};

std::string facts(int) {
    const auto own = identity::now();
    int signo = 0;
    ::prctl(PR_GET_PDEATHSIG, &signo);
    return fmt::format("users {} {} {}, groups {} {} {}, no new privileges: {}, signal {}",
                       own.user[0], own.user[1], own.user[2], own.group[0], own.group[1],
                       own.group[2], ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), signo);
}

void become_one(uid_t user, gid_t group) {
    confinement::require(::setresgid(group, group, group) == 0, "setresgid");
    confinement::require(::setresuid(user, user, user) == 0, "setresuid");
}

void change(std::string_view what) {
    const auto own = identity::now();
    if (what == "drop")
        become_one(own.user[0], own.group[0]);
    else if (what == "take")
        become_one(own.user[1], own.group[1]);
    else if (what == "toggle")
        confinement::require(::seteuid(confinement::nobody) == 0, "seteuid");
}

asio::awaitable<void> start(cohort::start_method method) {
    try {
        const auto done = co_await cohort::run(cohort::function<facts>(),
                                               cohort::options(1).start_method(method));
        fmt::print("{}\n", done.outcomes.at(0).result<std::string>());
    } catch (const cohort::spawn_error& error) {
        fmt::print("{}: {}\n", error.stage(), error.what());
    }
}

}  // namespace

int program(int argc, char** argv) {
    cohort::worker_main(argc, argv);
    if (argc < 3)
        return 2;
    const std::string_view what = argv[1];
    if (what == "as" && argc > 3) {
        confinement::become(static_cast<unsigned>(std::atoi(argv[2])));
        ::execv(argv[3], argv + 3);
        return 126;
    }
    change(what);
    asio::io_context context;
    asio::co_spawn(context, start(static_cast<cohort::start_method>(std::atoi(argv[2]))),
                   [](std::exception_ptr error) {
                       if (error)
                           std::rethrow_exception(error);
                   });
    context.run();
    return 0;
}

}  // namespace privileged_host
