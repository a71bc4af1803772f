// SPDX-License-Identifier: BSL-1.0
#include <cohort/detail/shared_memory.hpp>

#include "base/files/name.hpp"
#include "base/files/named_file.hpp"
#include "base/files/settings.hpp"
#include "base/sys/descriptors.hpp"
#include "base/sys/memfd.hpp"
#include "share/memory/segment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22  // Linux 5.14
#define MADV_POPULATE_WRITE 23
#endif

namespace cohort::detail::inline v0_1 {

namespace {

std::string array_of(std::size_t bytes) { return "shared array of " + base::size_text(bytes); }

std::shared_ptr<share::segment> map(const attachment& descriptor, memory_access access,
                                    const std::string& what, const std::string& name = "") {
    std::error_code error;
    auto mapped = share::segments().map(descriptor, access, name, error);
    if (!mapped)
        base::refuse(what, error);
    return mapped;
}

/// What is wrong with a file that is to be shared memory.
struct objection {
    int error = 0;  // 0: nothing
    const char* text = "";
};

/// Whether others who can write a file could take back its pages in this process' mapping. A hole
/// that is punched into a file of huge pages is filled from their pool, which may be empty then. A
/// worker trusts its host.
bool may_lose_pages(int descriptor, const struct stat& file) {
    struct statfs system {};
    return !base::this_is_a_worker() && ::fstatfs(descriptor, &system) == 0 &&
           system.f_type == HUGETLBFS_MAGIC && !share::segments().has({file.st_dev, file.st_ino});
}

objection object_to(int descriptor, memory_access access, bool must_be_sealed,
                    const struct stat& file) {
    if (!S_ISREG(file.st_mode))
        return {EINVAL, "the descriptor is not that of a memory file"};
    if (file.st_size <= 0)
        return {EINVAL, "the file is empty"};
    const int seals = ::fcntl(descriptor, F_GET_SEALS);
    if (must_be_sealed && (seals < 0 || (seals & F_SEAL_SHRINK) == 0))
        return {EPERM, "not sealed: its owner could truncate it, and every access would end this "
                       "process by SIGBUS"};
    if (must_be_sealed && may_lose_pages(descriptor, file))
        return {EPERM, "its pages are huge ones of the pool: its owner could take them back, and "
                       "every access would end this process by SIGBUS"};
    const int mode = ::fcntl(descriptor, F_GETFL) & O_ACCMODE;
    const bool is_writable = mode == O_RDWR && (seals < 0 || (seals & F_SEAL_WRITE) == 0);
    if (access == memory_access::read_write && !is_writable)
        return {EACCES, "it can only be read: use shared_array<const T>"};
    if (mode == O_WRONLY)
        return {EACCES, "it can only be written"};
    return {};
}

[[noreturn]] void refuse_removed(std::size_t bytes, const std::string& name) {
    base::refuse(array_of(bytes), ENOENT,
                 fmt::format("its name \"{}\" was removed from /dev/shm", name));
}

/// The same file, open for reading only. A mapping by a descriptor that could write would count as
/// a writer.
base::unique_fd reopen_for_reading(int descriptor, std::error_code& error) {
    const auto path = base::path_of(descriptor);
    return base::out_of_stdio(base::unique_fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), error);
}

}  // namespace

shared_memory shared_memory::make(std::size_t bytes, const share_options& how) {
    if (how.wanted_strategy() == sharing_strategy::file_system)
        return make_named(bytes, how);
    const auto what = array_of(bytes);
    shared_memory made(
        map(base::own(share::make_memory_file(bytes, how, what)), memory_access::read_write, what));
    if (how.uses_huge_pages())
        ::madvise(made.data(), made.size(), MADV_HUGEPAGE);  // fails for memory of the pool
    if (how.populates())
        made.populate(made.data(), bytes);
    return made;
}

shared_memory shared_memory::make_named(std::size_t bytes, const share_options& how) {
    const auto what = array_of(bytes) + " (file_system)";
    if (const auto no = base::why_no_names(); !no.why.empty() && !no.may_change)
        base::refuse(what, ENOTSUP, no.why);
    base::note_names();
    auto name = how.wanted_name();
    auto file = base::create_named(bytes, name, what);
    shared_memory made(
        map(base::own(std::move(file), name), memory_access::read_write, what, name));
    if (how.uses_huge_pages())
        ::madvise(made.data(), made.size(), MADV_HUGEPAGE);
    return made;
}

shared_memory shared_memory::attach(const std::string& name, memory_access access) {
    base::check_name(name);
    const auto what = fmt::format("shared array \"{}\"", name);
    std::error_code error;
    const bool writes = access == memory_access::read_write;
    auto file = base::open_named(name, writes ? O_RDWR : O_RDONLY, error);
    if (error)
        base::refuse(what, error);
    base::note_names();
    return shared_memory(map(base::own(std::move(file), name), access, what, name));
}

shared_memory shared_memory::arrived(const attachment& descriptor) {
    struct stat file {};
    if (!descriptor || ::fstat(*descriptor, &file) != 0)
        base::refuse("shared array", EBADF, "its descriptor did not arrive");
    const int mode = ::fcntl(*descriptor, F_GETFL) & O_ACCMODE;
    const auto access = mode == O_RDONLY ? memory_access::read_only : memory_access::read_write;
    const auto what = array_of(static_cast<std::size_t>(std::max<off_t>(file.st_size, 0)));
    const auto name = base::name_of(*descriptor);
    if (!name.empty() && !base::accepts_names())
        base::refuse(what, EPERM,
                     "it has a name in /dev/shm, and its owner could truncate it, and every access "
                     "would end this process by SIGBUS; to accept that, "
                     "set_sharing_strategy(sharing_strategy::file_system)");
    // What an array's sender has opened holds a lock. Another program's file, if somebody gave it
    // the library's mark, holds none: its name would be removed with this process' last handle.
    if (!name.empty() && !base::is_used(name))
        base::refuse(what, EPERM,
                     fmt::format("its name \"{}\" in /dev/shm is another program's: no user of it "
                                 "holds a lock",
                                 name));
    if (const auto wrong = object_to(*descriptor, access, name.empty(), file); wrong.error != 0)
        base::refuse(what, wrong.error, wrong.text);
    if (!name.empty()) {
        base::note_names();
        base::give_name(descriptor, name);
    }
    return shared_memory(map(descriptor, access, what, name));
}

shared_memory shared_memory::foreign(int descriptor, memory_access access, bool must_be_sealed) {
    const auto what = fmt::format("shared array from descriptor {}", descriptor);
    struct stat file {};
    if (::fstat(descriptor, &file) != 0)
        base::refuse(what, base::last_error());
    if (const auto wrong = object_to(descriptor, access, must_be_sealed, file); wrong.error != 0)
        base::refuse(what, wrong.error, wrong.text);
    std::error_code error;
    const bool narrows =
        access == memory_access::read_only && (::fcntl(descriptor, F_GETFL) & O_ACCMODE) == O_RDWR;
    auto own = narrows ? reopen_for_reading(descriptor, error) : base::duplicate(descriptor, error);
    if (error)
        base::refuse(what, error);
    return shared_memory(map(base::own(std::move(own)), access, what));
}

std::byte* shared_memory::data() const noexcept { return segment_ ? segment_->data() : nullptr; }

std::size_t shared_memory::size() const noexcept { return segment_ ? segment_->size() : 0; }

memory_access shared_memory::access() const noexcept { return segment_->access(); }

shared_memory shared_memory::around(const void* address) noexcept {
    return shared_memory(share::segments().around(address));
}

attachment shared_memory::descriptor() const { return opened(share::opening::for_a_call); }

int shared_memory::kept_descriptor() const {
    return segment_ ? *opened(share::opening::for_good) : -1;
}

attachment shared_memory::opened(share::opening how) const {
    std::error_code error;
    auto found = segment_->descriptor(how, error);
    if (error == std::errc::no_such_file_or_directory)
        refuse_removed(size(), segment_->name());
    if (error && !segment_->name().empty())
        base::refuse(array_of(size()), error);
    if (error)
        base::refuse(array_of(size()), EBADF,
                     "this worker is a forked copy that did not keep the array's descriptor; name "
                     "it: closure(f).keep(array)");
    return found;
}

const std::string& shared_memory::name() const noexcept {
    static const std::string none;
    return segment_ ? segment_->name() : none;
}

shared_memory shared_memory::read_only() const {
    if (access() == memory_access::read_only)
        return *this;
    if (!name().empty()) {
        auto named = attach(name(), memory_access::read_only);
        if (!is_same_memory(named))  // another file has the name now
            refuse_removed(size(), name());
        return named;
    }
    std::error_code error;
    const auto writable = descriptor();
    auto file = reopen_for_reading(*writable, error);
    const auto what = array_of(size()) + ", read-only, by /proc/self/fd";
    if (error == std::errc::permission_denied)
        base::refuse(what, EACCES,
                     "the memory belongs to another user: make the read-only handle before this "
                     "process changes its user");
    if (error)
        base::refuse(what, error);
    return shared_memory(
        map(base::own(std::move(file)), memory_access::read_only, array_of(size())));
}

shared_memory shared_memory::freeze() {
    if (access() == memory_access::read_only) {
        if ((::fcntl(*descriptor(), F_GET_SEALS) & F_SEAL_WRITE) != 0)
            return std::exchange(*this, {});
        base::refuse("freeze of a " + array_of(size()), EACCES,
                     "this handle can only read: freeze the array that it was made from");
    }
    if (!name().empty())
        base::refuse("freeze of a " + array_of(size()), ENOTSUP,
                     "only file_descriptor arrays can be frozen");
    auto frozen = read_only();
    const auto what = "freeze of a " + array_of(size());
    if (segment_.use_count() != 1 || share::segments().owners_of(*segment_) != 1)
        base::refuse(what, EBUSY,
                     "this process has other handles or views of it that can be written");
    const auto writable = descriptor();
    const auto error = segment_->unmapped([&] { return base::add_seals(*writable, F_SEAL_WRITE); });
    if (error == std::errc::device_or_resource_busy)
        base::refuse(what, EBUSY, "another process has mapped it so that it can be written");
    if (error)
        base::refuse(what, error);
    segment_.reset();
    return frozen;
}

void shared_memory::populate(const std::byte* from, std::size_t bytes) const {
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto first = reinterpret_cast<std::uintptr_t>(from) / page * page;
    const auto length = reinterpret_cast<std::uintptr_t>(from) + bytes - first;
    const int advice =
        access() == memory_access::read_write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
    while (::madvise(reinterpret_cast<void*>(first), length, advice) != 0)
        if (errno != EINTR && errno != EAGAIN)
            base::refuse("populate of a " + array_of(bytes), base::last_error());
}

shared_memory shared_memory::with_release(std::function<void()> release) const {
    struct keeper {
        std::shared_ptr<share::segment> segment;
        std::function<void()> release;
        ~keeper() {
            if (release)
                release();
        }
    };
    auto kept = std::make_shared<keeper>();
    kept->segment = segment_;
    kept->release = std::move(release);  // last, because it must not be called if this throws
    return shared_memory(std::shared_ptr<share::segment>(kept, segment_.get()));
}

bool shared_memory::is_same_memory(const shared_memory& other) const noexcept {
    return segment_ && other.segment_ && segment_->id() == other.segment_->id();
}

}  // namespace cohort::detail::inline v0_1

namespace cohort {

bool is_shared(const void* address) noexcept { return share::segments().contains(address); }

}  // namespace cohort
