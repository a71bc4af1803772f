// SPDX-License-Identifier: BSL-1.0
// A worker that records when it exits: leaves_child <descriptor of the stamps> <0|1>
// With 1 it leaves a child in a session of its own, which says nothing and holds standard output
// and standard error for a second.
#include "stamps.hpp"

#include <cstdlib>

#include <sys/mman.h>
#include <unistd.h>

namespace {

void rest(time_t seconds, long nanoseconds) {
    const timespec time{seconds, nanoseconds};
    ::nanosleep(&time, nullptr);
}

/// Returns when the child has its session.
bool leave_child() {
    int ready[2];
    if (::pipe(ready) != 0)
        return false;
    const pid_t child = ::fork();
    if (child == 0) {
        ::setsid();
        ::close(ready[0]);
        ::close(ready[1]);
        rest(1, 0);
        _exit(0);
    }
    ::close(ready[1]);
    char none = 0;
    return child > 0 && ::read(ready[0], &none, 1) == 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3)
        return 2;
    void* memory = ::mmap(nullptr, sizeof(bench::stamps), PROT_READ | PROT_WRITE, MAP_SHARED,
                          std::atoi(argv[1]), 0);
    if (memory == MAP_FAILED)
        return 2;
    if (std::atoi(argv[2]) != 0 && !leave_child())
        return 3;
    rest(0, 2'000'000);  // by then the parent is waiting again
    static_cast<bench::stamps*>(memory)->ended = bench::now();
    _exit(0);
}
