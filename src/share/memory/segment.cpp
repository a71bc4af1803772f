// SPDX-License-Identifier: BSL-1.0
#include "share/memory/segment.hpp"

#include "base/files/named_file.hpp"
#include "base/files/sweeper.hpp"
#include "share/memory/segment_table.hpp"

#include <utility>

#include <fcntl.h>
#include <sys/mman.h>

namespace cohort::share {
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

}  // namespace cohort::share
