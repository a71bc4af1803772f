// SPDX-License-Identifier: BSL-1.0
#include "worker/registry.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include <elf.h>
#include <link.h>

namespace cohort {
namespace {

// Constant-initialised: nodes register themselves from the initialisers of other translation units.
constinit std::atomic<detail::function_node*> registered{nullptr};

}  // namespace

detail::function_node::function_node(invoke_function f) noexcept : invoke(f) {
    next = registered.load(std::memory_order_relaxed);
    while (!registered.compare_exchange_weak(next, this, std::memory_order_release,
                                             std::memory_order_relaxed)) {
    }
}

namespace worker {
namespace {

using detail::function_node;

struct search {
    std::uintptr_t address;
    function_key key;
};

bool holds(const dl_phdr_info& module, std::uintptr_t address) noexcept {
    const std::span headers(module.dlpi_phdr, module.dlpi_phnum);
    return std::any_of(headers.begin(), headers.end(), [&](const ElfW(Phdr) & header) {
        const std::uintptr_t begin = module.dlpi_addr + header.p_vaddr;
        return header.p_type == PT_LOAD && address >= begin && address - begin < header.p_memsz;
    });
}

/// The build-id in one PT_NOTE segment; empty when it holds none.
std::string_view build_id_in(std::string_view notes, std::size_t alignment) noexcept {
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
        const std::string_view name = notes.substr(sizeof note, note.n_namesz);
        if (note.n_type == NT_GNU_BUILD_ID && name == std::string_view("GNU\0", 4)) {
            return notes.substr(description, note.n_descsz);
        }
        notes.remove_prefix(std::min(end, notes.size()));
    }
    return {};
}

std::string_view build_id_of(const dl_phdr_info& module) noexcept {
    for (const auto& header : std::span(module.dlpi_phdr, module.dlpi_phnum)) {
        if (header.p_type != PT_NOTE)
            continue;
        const auto* begin = reinterpret_cast<const char*>(module.dlpi_addr + header.p_vaddr);
        const auto id = build_id_in({begin, header.p_memsz}, header.p_align == 8 ? 8 : 4);
        if (!id.empty())
            return id;
    }
    return {};
}

void append(function_key& key, std::string_view bytes) noexcept {
    const std::size_t room = key.module.size() - key.module_length;
    const std::size_t count = std::min(room, bytes.size());
    std::memcpy(key.module.data() + key.module_length, bytes.data(), count);
    key.module_length = static_cast<std::uint8_t>(key.module_length + count);
}

/// Runs under the loader's lock: no allocation, no call back into it.
int visit(dl_phdr_info* module, std::size_t, void* data) {
    auto& wanted = *static_cast<search*>(data);
    if (!holds(*module, wanted.address))
        return 0;
    wanted.key.offset = wanted.address - module->dlpi_addr;
    const std::string_view id = build_id_of(*module);
    if (!id.empty()) {
        append(wanted.key, id);
    } else {
        const std::string_view path = module->dlpi_name == nullptr ? "" : module->dlpi_name;
        append(wanted.key, "name:");
        append(wanted.key, path.substr(path.rfind('/') + 1));
    }
    return 1;
}

}  // namespace

function_key key_of(const function_node& node) {
    search wanted{reinterpret_cast<std::uintptr_t>(&node), {}};
    dl_iterate_phdr(&visit, &wanted);
    return wanted.key;
}

const function_node* find(const function_key& key) {
    for (const function_node* node = registered.load(std::memory_order_acquire); node != nullptr;
         node = node->next) {
        if (key_of(*node) == key)
            return node;
    }
    return nullptr;
}

}  // namespace worker
}  // namespace cohort
