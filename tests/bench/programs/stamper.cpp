// SPDX-License-Identifier: BSL-1.0
// A worker that records times: stamper <descriptor or path of the stamps> <index> <size>
// Worker 0 waits until all others stand by, and a little longer, records the time and exits: with 1
// if there are others, with 0 if it is alone. The others record when SIGTERM comes, and exit.
#include "stamps.hpp"

#include <csignal>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

bench::stamps* shared = nullptr;
int index_of_this = 0;

void signalled(int) {
    shared->signalled[index_of_this] = bench::now();
    _exit(0);
}

void rest() {
    const timespec millisecond{0, 1'000'000};
    ::nanosleep(&millisecond, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4)
        return 2;
    index_of_this = std::atoi(argv[2]);
    const int others = std::atoi(argv[3]) - 1;
    const bool is_path = std::strchr(argv[1], '/') != nullptr;
    const int fd = is_path ? ::open(argv[1], O_RDWR | O_CLOEXEC) : std::atoi(argv[1]);
    void* memory =
        ::mmap(nullptr, sizeof(bench::stamps), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return 2;
    shared = static_cast<bench::stamps*>(memory);
    if (index_of_this > 0) {
        std::signal(SIGTERM, signalled);
        shared->standing_by.fetch_add(1);
        for (;;)
            ::pause();
    }
    do
        rest();  // by then the parent is waiting again
    while (shared->standing_by.load() < others);
    rest();
    shared->ended = bench::now();
    _exit(others > 0 ? 1 : 0);
}
