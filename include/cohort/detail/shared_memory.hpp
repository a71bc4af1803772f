// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/detail/registration.hpp>
#include <cohort/sharing.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace cohort::share {
class segment;
enum class opening;
}  // namespace cohort::share

// The border between shared_array, a template, and the compiled library. The bodies stand in
// src/share/memory.
namespace cohort::detail::inline v0_1 {

enum class memory_access { read_write, read_only };

/// A handle of one piece of shared memory that is mapped into this process. Copies are handles of
/// the same mapping; the last one unmaps it. Distinct handles are safe in any thread.
class COHORT_API shared_memory {
public:
    shared_memory() noexcept = default;
    /// New memory, all zero. @param bytes  at least 1
    static shared_memory make(std::size_t bytes, const share_options& how);
    /// Memory in /dev/shm, by its name.
    static shared_memory attach(const std::string& name, memory_access access);
    /// The memory of a descriptor that came from another process of this library. Memory that is
    /// mapped already, with the same access, is not mapped again.
    static shared_memory arrived(const attachment& descriptor);
    /// The memory of any descriptor, which stays the caller's.
    static shared_memory foreign(int descriptor, memory_access access, bool must_be_sealed);

    explicit operator bool() const noexcept { return segment_ != nullptr; }
    std::byte* data() const noexcept;
    std::size_t size() const noexcept;
    memory_access access() const noexcept;
    /// In /dev/shm; empty: the memory has no name.
    const std::string& name() const noexcept;
    /// The memory behind `address`; an empty handle if that is not shared memory of this library.
    static shared_memory around(const void* address) noexcept;

    /// A descriptor of the memory, valid as long as the attachment lives.
    /// @throws sharing_error  EBADF: this process is a forked copy that did not keep the descriptor
    attachment descriptor() const;
    /// A descriptor of the memory, valid as long as the mapping; -1: there is no memory.
    /// @throws sharing_error  EBADF: this process is a forked copy that did not keep the descriptor
    int kept_descriptor() const;
    /// The same memory, mapped so that it can't be written.
    shared_memory read_only() const;
    /// Ends all writing, for ever and in all processes. This handle must be the only one of its
    /// mapping. @return the memory, read-only. This handle is empty then; it is unchanged if this
    /// throws.
    shared_memory freeze();
    /// Gives pages to `bytes` bytes from `from` on.
    void populate(const std::byte* from, std::size_t bytes) const;
    /// A handle of this mapping. `release` is called when the last copy of the result is gone.
    shared_memory with_release(std::function<void()> release) const;
    /// Whether both are the same memory, even if it is mapped twice.
    bool is_same_memory(const shared_memory& other) const noexcept;

private:
    static shared_memory make_named(std::size_t bytes, const share_options& how);
    attachment opened(share::opening how) const;
    explicit shared_memory(std::shared_ptr<share::segment> segment) noexcept
        : segment_(std::move(segment)) {}
    std::shared_ptr<share::segment> segment_;
};

}  // namespace cohort::detail::inline v0_1
