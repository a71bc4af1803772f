// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cohort::protocol {

/// The program or a shared library, as it is loaded.
struct module {
    const char* path = "";                // as the loader has it; empty: the program itself
    std::uintptr_t base = 0;              // how far its addresses in memory are above the file's
    std::span<const std::byte> build_id;  // a view of the module's memory; empty: it has none
};

/// The module that holds this address. Async-signal-safe from glibc 2.35 on. What is found stays
/// valid for as long as the module is loaded.
/// @return false: no module holds it
/// @source _dl_find_object(3), dl_iterate_phdr(3)
bool find_module(std::uintptr_t address, module& found) noexcept;

/// The module with this build-id, in this process. @return false: none has it
bool find_module(std::span<const std::byte> build_id, module& found) noexcept;

/// Whether the file at this path has this build-id. The file that a module was loaded from may have
/// been replaced since.
bool file_has_build_id(const char* path, std::span<const std::byte> build_id) noexcept;

}  // namespace cohort::protocol
