// SPDX-License-Identifier: BSL-1.0
#include "protocol/trace/modules.hpp"

#include "base/sys/descriptors.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

namespace cohort::protocol {
namespace {

using headers = std::span<const ElfW(Phdr)>;

/// The build-id in one PT_NOTE segment; empty when it holds none.
std::span<const std::byte> build_id_in(std::span<const std::byte> notes,
                                       std::size_t alignment) noexcept {
    const auto aligned = [alignment](std::size_t n) {
        return (n + alignment - 1) & ~(alignment - 1);
    };
    ElfW(Nhdr) note;
    while (notes.size() >= sizeof note) {
        std::memcpy(&note, notes.data(), sizeof note);
        const std::size_t description = aligned(sizeof note + note.n_namesz);
        const std::size_t end = aligned(description + note.n_descsz);
        if (description + note.n_descsz > notes.size())
            return {};
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            std::memcmp(notes.data() + sizeof note, "GNU", 4) == 0)
            return notes.subspan(description, note.n_descsz);
        notes = notes.subspan(std::min(end, notes.size()));
    }
    return {};
}

std::span<const std::byte> build_id_of(headers segments, std::uintptr_t base) noexcept {
    for (const auto& header : segments) {
        if (header.p_type != PT_NOTE)
            continue;
        const auto* begin = reinterpret_cast<const std::byte*>(base + header.p_vaddr);
        const auto id = build_id_in({begin, header.p_memsz}, header.p_align == 8 ? 8 : 4);
        if (!id.empty())
            return id;
    }
    return {};
}

struct search {
    std::uintptr_t address;
    std::span<const std::byte> build_id;  // if not empty, searched for instead of the address
    module found;
};

bool holds(headers segments, std::uintptr_t base, std::uintptr_t address) noexcept {
    return std::any_of(segments.begin(), segments.end(), [&](const ElfW(Phdr) & header) {
        const std::uintptr_t begin = base + header.p_vaddr;
        return header.p_type == PT_LOAD && address >= begin && address - begin < header.p_memsz;
    });
}

/// Runs under the loader's lock: no allocation, no call back into the loader.
int visit(dl_phdr_info* info, std::size_t, void* data) {
    auto& wanted = *static_cast<search*>(data);
    const headers segments(info->dlpi_phdr, info->dlpi_phnum);
    if (wanted.build_id.empty() && !holds(segments, info->dlpi_addr, wanted.address))
        return 0;
    const auto id = build_id_of(segments, info->dlpi_addr);
    if (!wanted.build_id.empty() && !std::ranges::equal(id, wanted.build_id))
        return 0;
    wanted.found = {info->dlpi_name == nullptr ? "" : info->dlpi_name, info->dlpi_addr, id};
    return 1;
}

#ifdef DLFO_STRUCT_HAS_EH_DBASE  // glibc 2.35

/// find_module() without the loader's lock, because a thread that crashes may hold that lock.
bool find_at(std::uintptr_t address, module& found) noexcept {
    dl_find_object object;
    if (_dl_find_object(reinterpret_cast<void*>(address), &object) != 0)
        return false;
    const auto begin = reinterpret_cast<std::uintptr_t>(object.dlfo_map_start);
    ElfW(Ehdr) header;
    std::memcpy(&header, object.dlfo_map_start, sizeof header);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return false;
    const headers segments(reinterpret_cast<const ElfW(Phdr)*>(begin + header.e_phoff),
                           header.e_phnum);
    const auto first = std::ranges::find(segments, PT_LOAD, [](const auto& s) { return s.p_type; });
    if (first == segments.end())
        return false;
    const char* path = object.dlfo_link_map == nullptr ? nullptr : object.dlfo_link_map->l_name;
    found.path = path == nullptr ? "" : path;
    found.base = begin - (first->p_vaddr & ~(first->p_align - 1));
    found.build_id = build_id_of(segments, found.base);
    return true;
}

#else

bool find_at(std::uintptr_t, module&) noexcept { return false; }

#endif

bool find_by_loader(search wanted, module& found) noexcept {
    if (dl_iterate_phdr(&visit, &wanted) == 0)
        return false;
    found = wanted.found;
    return true;
}

/// Reads from `offset` on. @return whether all of `into` was read
bool read_at(int file, std::span<std::byte> into, std::uint64_t offset) noexcept {
    return ::pread(file, into.data(), into.size(), static_cast<off_t>(offset)) ==
           static_cast<ssize_t>(into.size());
}

}  // namespace

bool file_has_build_id(const char* path, std::span<const std::byte> build_id) noexcept {
    const base::unique_fd file(::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    ElfW(Ehdr) header;
    if (!file || !read_at(file.get(), std::as_writable_bytes(std::span(&header, 1)), 0) ||
        std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return false;
    std::array<ElfW(Phdr), 64> segments;
    const auto used = std::span(segments).first(std::min<std::size_t>(header.e_phnum, 64));
    if (!read_at(file.get(), std::as_writable_bytes(used), header.e_phoff))
        return false;
    for (const auto& segment : used) {
        std::array<std::byte, 1024> notes;
        const auto size = std::min<std::size_t>(segment.p_filesz, notes.size());
        const auto part = std::span(notes).first(size);
        if (segment.p_type == PT_NOTE && read_at(file.get(), part, segment.p_offset) &&
            std::ranges::equal(build_id_in(part, segment.p_align == 8 ? 8 : 4), build_id))
            return true;
    }
    return false;
}

bool find_module(std::uintptr_t address, module& found) noexcept {
    return find_at(address, found) || find_by_loader({address, {}, {}}, found);
}

bool find_module(std::span<const std::byte> build_id, module& found) noexcept {
    return !build_id.empty() && find_by_loader({0, build_id, {}}, found);
}

}  // namespace cohort::protocol
