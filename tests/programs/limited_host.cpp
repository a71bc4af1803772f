// SPDX-License-Identifier: BSL-1.0
// A host whose workers can't have what they are to have.
//   limited_host user      becomes nobody, who has no rights
//   limited_host filter    denies the system calls by which a child limits itself
//   limited_host no_kill   gives up CAP_KILL, as root
// Prints a line for each setting and each way to start: "nice, spawn: STAGE: the error".
#include "../support/system_call_filter.hpp"
#include "confinement.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <functional>
#include <string_view>
#include <vector>

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace limited_host {
namespace {

struct setting {
    const char* name;
    std::function<void(cohort::options&)> set;
};

const std::vector<setting> settings{
    {"nice", [](cohort::options& o) { o.nice(-5); }},
    {"io_priority", [](cohort::options& o) { o.io_priority(cohort::io_class::realtime, 0); }},
    {"batch", [](cohort::options& o) { o.batch_scheduling(); }},
    {"oom_score_adj", [](cohort::options& o) { o.oom_score_adj(-500); }},
    {"limit", [](cohort::options& o) { o.limit(cohort::resource::open_files, RLIM_INFINITY); }},
    {"groups", [](cohort::options& o) { o.groups({5}); }},
    {"other user", [](cohort::options& o) { o.user(30'000, 30'000); }},
    {"nobody", [](cohort::options& o) { o.user(confinement::nobody, confinement::nobody); }},
};

bool gives_up_kill() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3]{};
    if (::syscall(SYS_capget, &header, data) != 0)
        return false;
    for (auto* of : {&data[0].effective, &data[0].permitted})
        *of &= ~CAP_TO_MASK(CAP_KILL);
    return ::prctl(PR_CAPBSET_DROP, CAP_KILL, 0, 0, 0) == 0 &&
           ::syscall(SYS_capset, &header, data) == 0;
}

void does_nothing(int) {}

asio::awaitable<void> start(bool is_command, cohort::options how) {
    if (is_command)
        (void)co_await cohort::run(cohort::command("true"), how);
    else
        (void)co_await cohort::run(cohort::function<does_nothing>(), how);
}

void tell(asio::io_context& context, const setting& one, const char* way, bool is_command,
          cohort::start_method method) {
    auto how = cohort::options(1).start_method(method);
    one.set(how);
    fmt::print("{}, {}: ", one.name, way);
    asio::co_spawn(context, start(is_command, how), [](std::exception_ptr error) {
        try {
            if (error)
                std::rethrow_exception(error);
            fmt::print("well\n");
        } catch (const cohort::spawn_error& e) {
            fmt::print("{}: {}\n", e.stage(), e.what());
        }
    });
    context.run();
    context.restart();
}

}  // namespace

int program(int argc, char** argv) {
    cohort::worker_main(argc, argv);
    const std::string_view how = argc > 1 ? argv[1] : "";
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    if (how == "user")
        if (const auto why_not = confinement::lose("user"); !why_not.empty()) {
            fmt::print("skip: {}\n", why_not);
            return 0;
        }
    if (how == "filter")
        for (const long call : {SYS_setpriority, SYS_ioprio_set, SYS_sched_setscheduler})
            if (!cohort::test::deny(call, EPERM)) {
                fmt::print("skip: system calls can't be denied here\n");
                return 0;
            }
    if (how == "no_kill" && !gives_up_kill()) {
        fmt::print("skip: capabilities can't be given up here\n");
        return 0;
    }
    asio::io_context context;
    for (const auto& one : settings) {
        tell(context, one, "command", true, cohort::start_method::spawn);
        tell(context, one, "spawn", false, cohort::start_method::spawn);
        tell(context, one, "fork", false, cohort::start_method::fork);
        tell(context, one, "forkserver", false, cohort::start_method::forkserver);
    }
    return 0;
}

}  // namespace limited_host
