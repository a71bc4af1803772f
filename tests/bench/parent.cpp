// SPDX-License-Identifier: BSL-1.0
#include "parent.hpp"

#include <cerrno>
#include <cstring>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

namespace bench {

void touch_memory(std::size_t bytes) {
    if (bytes == 0)
        return;
    void* memory =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        throw std::system_error(errno, std::system_category(), "mmap");
    ::madvise(memory, bytes, MADV_NOHUGEPAGE);
    std::memset(memory, 1, bytes);
}

void open_descriptors(int count) {
    if (count == 0)
        return;
    const int original = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    for (int i = 1; i < count; ++i)
        if (::fcntl(original, F_DUPFD_CLOEXEC, 3) < 0)
            throw std::system_error(errno, std::system_category(), "open_descriptors");
}

void raise_descriptor_limit() {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace bench
