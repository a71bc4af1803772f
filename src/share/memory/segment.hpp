// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/files/descriptor.hpp"
#include "base/sys/descriptors.hpp"

#include <cohort/detail/shared_memory.hpp>
#include <cohort/sharing.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>

namespace cohort::share {

/// Makes the file behind new shared memory: a memfd of `bytes` bytes, all zero, sealed against
/// resizing.
/// @param what  the memory for the text of an error
/// @throws sharing_error
base::unique_fd make_memory_file(std::size_t bytes, const share_options& how,
                                 const std::string& what);

using detail::memory_access;

/// How long memory with a name keeps a descriptor that was opened for a call.
enum class opening {
    for_a_call,  // as long as the caller
    for_good,    // as long as the mapping
};

/// One mapping of one piece of shared memory, and a descriptor of it.
class segment {
public:
    /// Maps a file. If that fails data() is null, and errno says why. Only the segment_table makes
    /// segments, so that no memory is mapped twice.
    /// @param name  in /dev/shm: the segment then keeps no descriptor; empty: it has none
    segment(base::file_id id, memory_access access, std::size_t size,
            const detail::attachment& descriptor, const std::string& name);
    segment(const segment&) = delete;
    segment& operator=(const segment&) = delete;
    /// Leaves the table and unmaps. The last user of memory with a name removes the name.
    ~segment();

    base::file_id id() const noexcept { return id_; }
    memory_access access() const noexcept { return access_; }
    std::byte* data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }

    /// A descriptor of the memory. Memory with a name keeps none before one is opened for good, so
    /// its file is opened anew. Thread-safe.
    /// @param error  EBADF: this process is a forked copy in which the descriptor was closed.
    ///               ENOENT: the name was removed
    detail::attachment descriptor(opening how, std::error_code& error);
    /// Empty: the memory has no name.
    const std::string& name() const noexcept { return name_; }

    /// Takes the memory away and calls `seal`, which needs that this process does not map it.
    /// @return what `seal` returned; the memory is back, at the same address
    template <class Seal>
    auto unmapped(Seal seal) noexcept {
        hide();
        auto result = seal();
        show();
        return result;
    }

private:
    friend class segment_table;
    void hide() noexcept;
    void show() noexcept;

    const base::file_id id_;
    const memory_access access_;
    const std::size_t size_;
    const std::string name_;
    // Only under the table's lock, as the next one. Of memory with a name: null, or opened for
    // good.
    detail::attachment descriptor_;
    std::weak_ptr<const int> last_opened_;  // of memory with a name, so that a message has one
    std::byte* const data_;                 // null: mapping has failed
};

/// The segments of this process: by file, so that memory that arrives twice is mapped once, and by
/// address. Holds none of them. Thread-safe. A fork waits until no thread uses the table, so that a
/// forked copy gets it whole.
class segment_table {
public:
    /// Maps a file, or finds its mapping with the same access. A segment that has lost its
    /// descriptor in a fork gets this one.
    /// @param descriptor  made by own(), of a regular file
    /// @param name        in /dev/shm: the segment then keeps no descriptor; empty: it has none
    std::shared_ptr<segment> map(const detail::attachment& descriptor, memory_access access,
                                 const std::string& name, std::error_code& error);
    /// The mapping around an address; null: there is none.
    std::shared_ptr<segment> around(const void* address) noexcept;
    bool contains(const void* address) noexcept;
    /// Whether a file is mapped.
    bool has(const base::file_id& file) noexcept;
    /// How many handles a segment has.
    long owners_of(const segment& mapped) noexcept;

    std::mutex mutex;  // a segment's descriptors change under it too

private:
    friend class segment;
    struct entry {
        std::weak_ptr<segment> mapped;
        const segment* address;
    };
    using key = std::pair<base::file_id, memory_access>;

    void remove(const segment& gone) noexcept;
    const entry* entry_around(const void* address) const noexcept;

    std::map<key, entry> by_file_;
    std::map<std::uintptr_t, entry> by_address_;
};

/// The table of this process.
segment_table& segments();

}  // namespace cohort::share
