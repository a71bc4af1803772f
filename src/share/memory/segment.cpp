// SPDX-License-Identifier: BSL-1.0
#include "share/memory/segment.hpp"

#include "base/files/fork_held.hpp"
#include "base/files/named_file.hpp"
#include "base/files/settings.hpp"
#include "base/files/sweeper.hpp"
#include "base/sys/descriptors.hpp"
#include "base/sys/memfd.hpp"
#include "base/sys/processes.hpp"

#include <cerrno>
#include <cstdint>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
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

namespace {

int protection(memory_access access) noexcept {
    return access == memory_access::read_write ? PROT_READ | PROT_WRITE : PROT_READ;
}

/// @return null: it can't be mapped, see errno
std::byte* map(std::size_t size, memory_access access, int file) noexcept {
    void* const data = ::mmap(nullptr, size, protection(access), MAP_SHARED, file, 0);
    return data == MAP_FAILED ? nullptr : static_cast<std::byte*>(data);
}

}  // namespace

segment::segment(base::file_id id, memory_access access, std::size_t size,
                 const detail::attachment& descriptor, const std::string& name)
    : id_(id), access_(access), size_(size), name_(name),
      descriptor_(name.empty() ? descriptor : nullptr), data_(map(size, access, *descriptor)) {}

segment::~segment() {
    segments().remove(*this);
    if (data_ != nullptr)
        ::munmap(data_, size_);
    descriptor_.reset();  // else it would count as a user of the name
    if (!name_.empty())
        base::names_sweeper().release(name_);
}

detail::attachment segment::descriptor(opening how, std::error_code& error) {
    const auto known = [&]() -> detail::attachment {
        if (base::is_open(descriptor_))
            return descriptor_;
        auto opened = last_opened_.lock();
        if (!base::is_open(opened))
            return nullptr;
        if (how == opening::for_good)
            descriptor_ = opened;
        return opened;
    };
    std::unique_lock guard(segments().mutex);
    if (auto found = known())
        return found;
    if (name_.empty()) {
        error = std::make_error_code(std::errc::bad_file_descriptor);
        return nullptr;
    }
    // Not under the lock, because a lock on the file may have to be waited for.
    guard.unlock();
    auto file =
        base::open_named(name_, access_ == memory_access::read_write ? O_RDWR : O_RDONLY, error);
    if (!error && base::id_of(file.get()) != id_)
        error = std::make_error_code(std::errc::no_such_file_or_directory);
    if (error)
        return nullptr;
    auto opened = base::own(std::move(file), name_);
    guard.lock();
    if (auto found = known()) {  // another thread was faster
        guard.unlock();          // before this thread's own is closed
        return found;
    }
    last_opened_ = opened;
    return how == opening::for_good ? descriptor_ = opened : opened;
}

/// Puts memory without a file in the mapping's place, so that no other thread gets its addresses.
void segment::hide() noexcept {
    ::mmap(data_, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

void segment::show() noexcept {
    ::mmap(data_, size_, protection(access_), MAP_SHARED | MAP_FIXED, *descriptor_, 0);
}

segment_table& segments() { return base::fork_held<segment_table>::get(); }

std::shared_ptr<segment> segment_table::map(const detail::attachment& descriptor,
                                            memory_access access, const std::string& name,
                                            std::error_code& error) {
    struct stat file;
    if (::fstat(*descriptor, &file) != 0) {
        error = base::last_error();
        return nullptr;
    }
    const base::file_id id{file.st_dev, file.st_ino};
    // Declared before the lock, because the last owner of a segment locks the table.
    std::shared_ptr<segment> found;
    const std::lock_guard guard(mutex);
    if (const auto at = by_file_.find({id, access}); at != by_file_.end())
        found = at->second.mapped.lock();
    if (found) {
        if (name.empty() && !base::is_open(found->descriptor_))
            found->descriptor_ = descriptor;
        return found;
    }
    found = std::make_shared<segment>(id, access, static_cast<std::size_t>(file.st_size),
                                      descriptor, name);
    if (found->data() == nullptr) {
        error = base::last_error();
        return nullptr;
    }
    const entry noted{found, found.get()};
    by_file_.insert_or_assign({id, access}, noted);
    by_address_.insert_or_assign(reinterpret_cast<std::uintptr_t>(found->data()), noted);
    return found;
}

void segment_table::remove(const segment& gone) noexcept {
    const std::lock_guard guard(mutex);
    // Another thread may have mapped the file again since the last owner let go of this segment.
    if (const auto at = by_file_.find({gone.id(), gone.access()});
        at != by_file_.end() && at->second.address == &gone)
        by_file_.erase(at);
    by_address_.erase(reinterpret_cast<std::uintptr_t>(gone.data()));
}

const segment_table::entry* segment_table::entry_around(const void* address) const noexcept {
    const auto wanted = reinterpret_cast<std::uintptr_t>(address);
    auto next = by_address_.upper_bound(wanted);
    if (next == by_address_.begin())
        return nullptr;
    const auto& [begin, found] = *--next;
    return wanted - begin < found.address->size() ? &found : nullptr;
}

bool segment_table::has(const base::file_id& file) noexcept {
    const std::lock_guard guard(mutex);
    for (const auto access : {memory_access::read_only, memory_access::read_write})
        if (const auto at = by_file_.find({file, access});
            at != by_file_.end() && !at->second.mapped.expired())
            return true;
    return false;
}

std::shared_ptr<segment> segment_table::around(const void* address) noexcept {
    std::shared_ptr<segment> found;
    const std::lock_guard guard(mutex);
    if (const entry* const at = entry_around(address))
        found = at->mapped.lock();
    return found;
}

long segment_table::owners_of(const segment& mapped) noexcept {
    const std::lock_guard guard(mutex);
    const auto at = by_file_.find({mapped.id(), mapped.access()});
    return at == by_file_.end() ? 0 : at->second.mapped.use_count();
}

bool segment_table::contains(const void* address) noexcept {
    const std::lock_guard guard(mutex);
    const entry* const found = entry_around(address);
    return found != nullptr && !found->mapped.expired();
}

}  // namespace cohort::share
