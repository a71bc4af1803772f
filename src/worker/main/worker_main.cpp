// SPDX-License-Identifier: BSL-1.0
#include <cohort/worker.hpp>

#include "protocol/registry/mark.hpp"
#include "worker/main/forkserver_main.hpp"
#include "worker/main/run_worker.hpp"

#include <string>
#include <string_view>

#include <sys/prctl.h>
#include <unistd.h>

namespace cohort {

namespace {

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

[[noreturn]] void refuse_by_hand(const char* program, const char* argument, const char* what) {
    std::string line(base_name(program == nullptr ? "" : program));
    line += ": ";
    line += argument;
    line += " is how the cohort library starts ";
    line += what;
    line += '\n';
    (void)!::write(STDERR_FILENO, line.data(), line.size());
    ::_exit(127);
}

/// Sets the process' name, which is "exe" if it was executed by way of /proc/self/exe.
void take_name(const char* program) {
    if (program != nullptr)
        ::prctl(PR_SET_NAME, std::string(base_name(program)).c_str());
}

}  // namespace

void worker_main(int argc, char** argv) {
    protocol::note_worker_main_call();
    if (argc < 2 || argv == nullptr || argv[1] == nullptr)
        return;
    if (argv[1] == std::string_view(protocol::agent_argument)) {
        if (!protocol::may_be_agent())
            refuse_by_hand(argv[0], argv[1],
                           "its agents on other hosts: it cannot be given by hand (standard input "
                           "or output is a terminal, or the program has more rights than its "
                           "caller)");
        take_name(argv[0]);
        protocol::run_agent();
    }
    const auto mark = protocol::parse_mark(argv[1]);
    if (!mark && !protocol::looks_like_mark(argv[1]))
        return;
    if (protocol::worker_main_reached())
        return;
    if (!mark || !protocol::holds(*mark))
        refuse_by_hand(argv[0], argv[1],
                       "its worker processes: it cannot be given by hand (this descriptor is not "
                       "that control file)");
    protocol::note_worker_main();
    take_name(argv[0]);
    if (mark->names == protocol::mark::what::server)
        worker::serve(*mark);
    worker::run_worker(*mark);
}

}  // namespace cohort
