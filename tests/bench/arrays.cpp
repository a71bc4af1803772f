// SPDX-License-Identifier: BSL-1.0
// Measures how long it takes to make an array in shared memory, to touch it and to drop it.
#include "quantile.hpp"
#include "sections.hpp"
#include "trips.hpp"

#include <cohort/shared_array.hpp>

#include <fmt/core.h>

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace bench {
namespace {

void by_cohort(cohort::sharing_strategy strategy, std::size_t bytes) {
    const cohort::shared_array<char> array(cohort::share_options().strategy(strategy), bytes);
    *array.data() = 1;
}

/// The calls that a memory file needs which nobody can truncate.
void raw(std::size_t bytes) {
    const int file = ::memfd_create("raw", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    void* memory = MAP_FAILED;
    if (file >= 0 && ::ftruncate(file, static_cast<off_t>(bytes)) == 0 &&
        ::fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0)
        memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED)
        throw std::system_error(errno, std::system_category(), "memory file");
    *static_cast<char*>(memory) = 1;
    ::munmap(memory, bytes);
    ::close(file);
}

}  // namespace

void arrays(const arguments& words) {
    const std::string peer = words.text("peer");
    const auto bytes = static_cast<std::size_t>(words.number("bytes"));
    const auto us = time_each({bytes, words.number("count")}, [&] {
        if (peer == "file_descriptor")
            by_cohort(cohort::sharing_strategy::file_descriptor, bytes);
        else if (peer == "file_system")
            by_cohort(cohort::sharing_strategy::file_system, bytes);
        else
            raw(bytes);
    });
    fmt::print("{{\"us\": {}}}\n", quantile(us, 0.5));
}

}  // namespace bench
