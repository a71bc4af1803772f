// SPDX-License-Identifier: BSL-1.0
// Holds the zombie of another process, as a debugger may:
//   tracer PID     seizes the process, writes a byte to 9, waits for the end of 8, and only then
//                  reaps the process
// Exits with 77 if it may not trace.
#include <cstdio>
#include <cstdlib>

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char** argv) {
    if (argc != 2)
        return 2;
    const pid_t traced = static_cast<pid_t>(std::atoi(argv[1]));
    if (::ptrace(PTRACE_SEIZE, traced, nullptr, nullptr) != 0) {
        std::perror("tracer: PTRACE_SEIZE");
        (void)!::write(9, "\n", 1);
        return 77;
    }
    char byte;
    if (::write(9, "\n", 1) != 1 || ::read(8, &byte, 1) != 0)
        return 3;
    int status = 0;
    return ::waitpid(traced, &status, __WALL) == traced && WIFEXITED(status) ? 0 : 4;
}
