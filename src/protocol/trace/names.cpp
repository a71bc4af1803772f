// SPDX-License-Identifier: BSL-1.0
#include "protocol/trace/names.hpp"

#include "base/sys/descriptors.hpp"
#include "base/text/members.hpp"
#include "base/values/demangle.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#ifdef COHORT_HAS_BACKTRACE
#include <backtrace.h>
#endif

namespace cohort::protocol {
namespace {

constexpr char digits_of[] = "0123456789abcdef";

}  // namespace

void raw_json::put(char c) noexcept {
    if (held_ == buffer_.size())
        flush();
    buffer_[held_++] = c;
}

raw_json& raw_json::text(std::string_view literal) noexcept {
    for (const char c : literal)
        put(c);
    return *this;
}

raw_json& raw_json::digits(bool negative, std::uint64_t value) noexcept {
    if (negative) {
        put('-');
        value = 0 - value;
    }
    std::array<char, 20> text;
    std::size_t at = text.size();
    do {
        text[--at] = digits_of[value % 10];
        value /= 10;
    } while (value != 0);
    return this->text({text.data() + at, text.size() - at});
}

raw_json& raw_json::quoted(std::string_view value) noexcept {
    put('"');
    for (const char c : value) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            put('\\');
            put(c);
        } else if (byte < 0x20) {
            text("\\u00");
            put(digits_of[byte >> 4]);
            put(digits_of[byte & 0xF]);
        } else {
            put(c);
        }
    }
    put('"');
    return *this;
}

void raw_json::module_of(std::uintptr_t call) noexcept {
    protocol::module at;
    if (!protocol::find_module(call, at)) {
        text("\"o\":").number(call);
        return;
    }
    std::string_view path = at.path;
    if (path.empty()) {
        if (program_path_.empty()) {
            const auto found = program_path(program_);
            program_path_ = {found.data(), found.size()};
        }
        path = program_path_;
    }
    text("\"m\":").quoted(path).text(",\"b\":\"");
    for (const std::byte b : at.build_id) {
        put(digits_of[std::to_integer<unsigned>(b) >> 4]);
        put(digits_of[std::to_integer<unsigned>(b) & 0xF]);
    }
    text("\",\"o\":").number(call - at.base);
}

raw_json& raw_json::frames(std::span<const std::uintptr_t> calls) noexcept {
    put('[');
    for (std::size_t i = 0; i < calls.size(); ++i) {
        text(i == 0 ? "{" : ",{");
        module_of(calls[i]);
        put('}');
        flush();
    }
    put(']');
    return *this;
}

void raw_json::flush() noexcept {
    std::size_t done = 0;
    while (done < held_ && !broken_) {
        const ssize_t count = offset_ < 0
                                  ? ::write(fd_, buffer_.data() + done, held_ - done)
                                  : ::pwrite(fd_, buffer_.data() + done, held_ - done, offset_);
        if (count < 0 && errno == EINTR)
            continue;
        broken_ = count <= 0;
        if (broken_)
            break;
        done += static_cast<std::size_t>(count);
        length_ += static_cast<std::size_t>(count);
        if (offset_ >= 0)
            offset_ += count;
    }
    held_ = 0;
}

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

namespace {

/// Where a call is in this process.
struct place {
    std::uintptr_t address;
    bool has_file;  // false: the module's file was replaced after the module was loaded
    bool is_program;
};

std::optional<place> place_of(const stack_frame& frame) {
    const auto bytes = base::bytes_of_hex(frame.build_id).value_or("");
    const auto build_id = std::as_bytes(std::span(bytes));
    protocol::module here;
    if (!protocol::find_module(build_id, here))
        return std::nullopt;
    const auto address = here.base + static_cast<std::uintptr_t>(frame.offset);
    protocol::module there;
    if (!protocol::find_module(address, there) || there.base != here.base)
        return std::nullopt;  // the offset, which was read from a file, is beyond the module's end
    // libbacktrace reads the program itself by way of /proc/self/exe.
    const bool is_program = *here.path == '\0';
    return place{address, is_program || protocol::file_has_build_id(here.path, build_id),
                 is_program};
}

/// Demangles only what begins with _Z. Another name may be that of a C function, and must not be
/// taken for that of a type: "f" would become float.
std::string readable(const char* function) {
    const std::string_view name(function == nullptr ? "" : function);
    return name.starts_with("_Z") ? base::demangle(function) : std::string(name);
}

#ifdef COHORT_HAS_BACKTRACE

void ignore(void*, const char*, int) {}

/// The calls at one address, innermost first: each but the last is inlined in the next one.
struct calls {
    std::vector<stack_frame> found;
    stack_frame raw;

    static int add(void* data, std::uintptr_t, const char* file, int line, const char* function) {
        auto& all = *static_cast<calls*>(data);
        if (file == nullptr && function == nullptr)
            return 0;
        auto frame = all.raw;
        frame.function = readable(function);
        frame.file = file == nullptr ? "" : file;
        frame.line = file == nullptr ? 0 : line;
        all.found.push_back(std::move(frame));
        return 0;
    }
};

void take_symbol(void* data, std::uintptr_t, const char* symbol, std::uintptr_t, std::uintptr_t) {
    static_cast<stack_frame*>(data)->function = readable(symbol);
}

#endif

/// Names the function by the dynamic symbols alone, which a stripped module has too.
void name_by_loader(stack_frame& frame, std::uintptr_t address) {
    Dl_info info;
    if (frame.function.empty() && dladdr(reinterpret_cast<void*>(address), &info) != 0)
        frame.function = readable(info.dli_sname);
}

/// Whether the frame is one of the functions that carry out a throw, above the one that throws.
bool is_plumbing_above(const stack_frame& frame) {
    constexpr std::array<std::string_view, 3> throws{"__cxa_throw", "__wrap___cxa_throw",
                                                     "__interceptor___cxa_throw"};
    return std::ranges::find(throws, frame.function) != throws.end() ||
           frame.function.starts_with("void std::throw_with_nested<") ||
           frame.function.starts_with("void std::__throw_with_nested_impl<");
}

/// Whether the frame is one of the functions that call the worker's function. For a closure, whose
/// type is local, the debug information has only the short name.
bool is_plumbing_below(const stack_frame& frame) {
    return frame.function.find("::run_callable<") != std::string::npos ||
           (frame.function.starts_with("run_callable<") &&
            frame.file.ends_with("cohort/detail/registration.hpp"));
}

}  // namespace

#ifdef COHORT_HAS_BACKTRACE

/// libbacktrace knows only the modules that were loaded when its state was made, so a new state is
/// made after a dlopen(3).
bool names::can_name(bool of_program) {
    unsigned long long loads = 0;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* data) {
            *static_cast<unsigned long long*>(data) = info->dlpi_adds;
            return 1;
        },
        &loads);
    constexpr int most = 16;  // each state holds the debug information
    if (state_ == nullptr || loads != loads_) {
        if (made_ == most)
            return of_program && state_ != nullptr;  // every state knows the program itself
        state_ = backtrace_create_state(nullptr, 0, &ignore, nullptr);
        loads_ = loads;
        ++made_;
    }
    return state_ != nullptr;
}

/// The calls at one address, outermost first.
std::vector<stack_frame> names::all_at(const stack_frame& frame, std::uintptr_t address) {
    calls at{{}, frame};
    backtrace_pcinfo(state_, address, &calls::add, &ignore, &at);
    if (at.found.empty())
        at.found.push_back(frame);
    // For functions with internal linkage the debug information has only the bare name; the symbol
    // has the signature.
    auto& outermost = at.found.back().function;
    if (outermost.find('(') == std::string::npos) {
        stack_frame by_symbol;
        backtrace_syminfo(state_, address, &take_symbol, &ignore, &by_symbol);
        if (outermost.empty() || by_symbol.function.find('(') != std::string::npos)
            outermost = by_symbol.function;
    }
    for (std::size_t i = 0; i + 1 < at.found.size(); ++i)
        at.found[i].inlined = true;
    std::ranges::reverse(at.found);
    return std::move(at.found);
}

#else

bool names::can_name(bool) { return false; }

std::vector<stack_frame> names::all_at(const stack_frame& frame, std::uintptr_t) { return {frame}; }

#endif

void names::give_to(std::vector<stack_frame>& frames) {
    std::vector<stack_frame> result;
    for (auto& frame : frames) {
        const auto at = frame.function.empty() ? place_of(frame) : std::nullopt;
        if (!at) {
            result.push_back(std::move(frame));
            continue;
        }
        const bool is_known = at->has_file && can_name(at->is_program);
        auto all = is_known ? all_at(frame, at->address) : std::vector{frame};
        name_by_loader(all.front(), at->address);
        std::ranges::move(all, std::back_inserter(result));
    }
    while (!result.empty() && is_plumbing_above(result.back()))
        result.pop_back();
    const auto first =
        std::ranges::find_if_not(result, [](const auto& f) { return is_plumbing_below(f); });
    if (first != result.end())
        result.erase(result.begin(), first);
    frames = std::move(result);
}

}  // namespace cohort::protocol
