// SPDX-License-Identifier: BSL-1.0
#include "share/memory/memory_file.hpp"

#include "base/files/settings.hpp"
#include "base/sys/descriptors.hpp"
#include "base/sys/memfd.hpp"
#include "base/sys/processes.hpp"

#include <cerrno>
#include <cstdint>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace cohort::share {
namespace {

constexpr char name[] = "cohort-array";
constexpr char overcommit_path[] = "/proc/sys/vm/overcommit_memory";
constexpr char transparent_path[] = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
constexpr std::size_t huge_page = std::size_t{2} << 20;

/// Whether the kernel promises no more memory than there is. Pages of a memory file must be
/// reserved then, because an access to one that can't be had raises SIGBUS.
bool overcommit_is_off() noexcept {
    char room[8];
    return base::read_start(overcommit_path, room).starts_with('2');
}

std::error_code resize(int file, std::size_t bytes) noexcept {
    auto error = base::set_length(file, bytes);
    if (!error && overcommit_is_off())
        error = base::reserve(file, bytes);
    return error;
}

/// Whether the kernel gives transparent huge pages to memory files that ask for them.
bool has_transparent_huge_pages() noexcept {
    char room[128];
    const auto choices = base::read_start(transparent_path, room);
    return !choices.empty() && choices.find("[never]") == choices.npos &&
           choices.find("[deny]") == choices.npos;
}

/// A memory file from the pool of huge pages, with all its pages reserved; empty: the pool has too
/// few.
base::unique_fd take_from_pool(std::size_t bytes) noexcept {
    if (bytes > SIZE_MAX - huge_page)
        return {};
    std::error_code error;
    const auto length = (bytes + huge_page - 1) / huge_page * huge_page;
    auto file = base::make_huge_memfd(name, error);
    if (error || base::set_length(file.get(), length) || base::reserve(file.get(), length) ||
        base::add_seals(file.get(), F_SEAL_SHRINK | F_SEAL_GROW))
        return {};
    return file;
}

}  // namespace

base::unique_fd make_memory_file(std::size_t bytes, const share_options& how,
                                 const std::string& what) {
    if (how.uses_huge_pages()) {
        if (auto file = take_from_pool(bytes))
            return file;
        if (!has_transparent_huge_pages())
            base::refuse(what, ENOTSUP,
                         "huge pages: the pool has too few (vm.nr_hugepages), and "
                         "/sys/kernel/mm/transparent_hugepage/shmem_enabled is \"never\"");
    }
    std::error_code error;
    auto file = base::make_memfd(name, error);
    if (!error)
        error = resize(file.get(), bytes);
    if (!error)
        error = base::add_seals(file.get(), F_SEAL_SHRINK | F_SEAL_GROW);
    if (error)
        base::refuse(what, error);
    return file;
}

}  // namespace cohort::share
