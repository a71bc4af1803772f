// SPDX-License-Identifier: BSL-1.0
#include "share/memory/segment_table.hpp"

#include "base/files/fork_held.hpp"
#include "base/sys/descriptors.hpp"

#include <sys/stat.h>

namespace cohort::share {

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
