// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/errors.hpp>

#include <cstddef>
#include <optional>
#include <set>
#include <string>

namespace cohort {

/// How shared memory is made and found.
enum class sharing_strategy {
    /// A memory file without a name. A process keeps one descriptor for each. Nothing is left of it
    /// when its last user is gone, and the size of /dev/shm is no limit.
    file_descriptor,
    /// A file in /dev/shm. A process keeps no descriptor for it, and any process of this user can
    /// attach to it by name. All its memory is reserved when it is made. If the last user is
    /// killed, the name stays until somebody sweeps, see sweep_shared_memory().
    file_system,
};
COHORT_API std::string to_string(sharing_strategy strategy);  ///< as torch spells it

/// The strategies that work here; tried once. capabilities() says why one does not.
/// @thread_safety safe.
/// @source torch.multiprocessing.get_all_sharing_strategies
COHORT_API std::set<sharing_strategy> get_all_sharing_strategies();
/// The strategy of memory that is made without share_options::strategy; at first file_descriptor.
/// A worker starts with its parent's.
/// @thread_safety safe.
/// @source torch.multiprocessing.get_sharing_strategy
COHORT_API sharing_strategy get_sharing_strategy() noexcept;
/// Sets the strategy of memory that is made from now on, in this process and in workers that it
/// starts from now on.
/// @throws sharing_error  ENOTSUP: the strategy does not work here
/// @thread_safety safe.
/// @source torch.multiprocessing.set_sharing_strategy; differs: workers inherit it
COHORT_API void set_sharing_strategy(sharing_strategy strategy);
/// Removes the names in /dev/shm that processes of this user have left and nobody uses any more.
/// Files of other programs, as shm_open(3) makes them, always stay.
/// The library does that itself: whoever unmaps the memory last, the parent of a worker that was
/// killed, the guardian of a program that has ended, and the next program of this user that starts
/// a group.
/// @return how many
/// @thread_safety safe.
COHORT_API std::size_t sweep_shared_memory();

/// How a shared array is made. Each setter returns the object itself.
class COHORT_API share_options {
public:
    /// The strategy; by default get_sharing_strategy().
    share_options& strategy(sharing_strategy wanted) noexcept {
        strategy_ = wanted;
        return *this;
    }
    /// A name of your own in /dev/shm, by which shared_array::attach finds the array; it implies
    /// the strategy file_system. Making the array throws sharing_error, EEXIST, if the name is in
    /// use, also by a file that is not this library's.
    /// @param name  at most 200 bytes, without '/' and NUL
    /// @throws std::invalid_argument  no file can have this name
    share_options& name(std::string name);
    /// Gives the array its pages at once instead of at the first touch, as shared_array::populate.
    share_options& populate(bool wanted = true) noexcept {
        populate_ = wanted;
        return *this;
    }
    /// Takes the array's memory from the pool of huge pages, see hugetlbpage in the kernel's
    /// documentation; where that is empty, asks for transparent huge pages. The array is not made
    /// if this machine allows neither: sharing_error ENOTSUP.
    ///
    /// Whoever can write such an array can take pages back to the pool (fallocate(2)), and where
    /// the pool is empty then, the next access ends this process by SIGBUS. So give it to workers
    /// that you trust, or as a shared_array<const T>. A program accepts no array from the pool that
    /// comes from a worker, unless the program has mapped it: sharing_error EPERM.
    share_options& huge_pages(bool wanted = true) noexcept {
        huge_pages_ = wanted;
        return *this;
    }

    /// Whether pages are given at once.
    bool populates() const noexcept { return populate_; }
    /// The strategy that the array will have.
    sharing_strategy wanted_strategy() const noexcept {
        return strategy_ ? *strategy_ : get_sharing_strategy();
    }
    /// The name that the array will have; empty: one is drawn if it has one.
    const std::string& wanted_name() const noexcept { return name_; }
    /// Whether huge pages are wanted.
    bool uses_huge_pages() const noexcept { return huge_pages_; }

private:
    std::optional<sharing_strategy> strategy_;
    std::string name_;
    bool populate_ = false;
    bool huge_pages_ = false;
};

/// Whether `address` points into shared memory that this library has mapped into this process.
/// @thread_safety safe.
/// @source torch.Tensor.is_shared
COHORT_API bool is_shared(const void* address) noexcept;

/// The type of the constant trust_unsealed.
struct trust_unsealed_t {
    explicit trust_unsealed_t() = default;
};
/// For shared_array::from_descriptor: accepts memory that its owner could truncate, or whose huge
/// pages its owner could take back. An access to memory that is gone ends this process by SIGBUS.
inline constexpr trust_unsealed_t trust_unsealed{};

}  // namespace cohort
