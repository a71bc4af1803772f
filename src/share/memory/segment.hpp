// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/files/descriptor.hpp"

#include <cohort/detail/shared_memory.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <system_error>

namespace cohort::share {

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

}  // namespace cohort::share
