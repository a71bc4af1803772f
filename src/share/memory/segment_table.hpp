// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "share/memory/segment.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>

namespace cohort::share {

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
