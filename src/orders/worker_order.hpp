// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "orders/guard.hpp"
#include "sys/raw_call.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <sys/types.h>

namespace cohort::orders {

// All that one start needs, as one block of bytes: the head `worker_order`, then its lists, then its
// texts. Whoever makes the child reads the same bytes: the child between clone and exec, a forked
// copy, and the fork server's copy, which gets them through a file. Inside the block a place is told
// by its offset; only the tables that execve(2) wants hold addresses, which rebase() makes right.

/// A text in the block. A NUL follows it, which `length` does not count. Offset 0, where the head
/// stands, means that there is none.
struct text_ref {
    std::uint32_t offset = 0;
    std::uint32_t length = 0;
};

/// `count` elements in the block.
template <class T>
struct list_ref {
    std::uint32_t offset = 0;
    std::uint32_t count = 0;
};

/// A table of addresses of texts, as execve(2) takes it: a null follows the last, which `count` does
/// not count.
struct text_table {
    std::uint32_t offset = 0;
    std::uint32_t count = 0;
};

/// A place in the list of the descriptors that the start needs; -1: none.
using slot = std::int32_t;

/// What the child puts at descriptor `target`: a copy of the one in the slot `source`, or the file
/// `path`, which the child opens. With neither, `target` is closed.
struct descriptor_move {
    std::int32_t target = -1;
    slot source = -1;
    text_ref path;
    std::int32_t open_flags = 0;
    std::int32_t memory_file = 0;  // not 0: opened anew by its path in /proc it serves as well
};

/// A place in a text where the child writes its pid in decimal, then the suffix and a NUL. It has
/// room for 10 digits and both.
struct pid_field {
    std::uint32_t offset = 0;
    text_ref suffix;  // "/fd/60"
};

/// What matters where the program that is executed is this process' own one, as a worker or as the
/// fork server. Such a program takes its mark only from its own user, and it must not gain rights
/// that this process does not have (any more).
struct own_program {
    std::int32_t mark = -1;  // the child's descriptor that the mark names; -1: another program
    uid_t owner = 0;         // of that file
    gid_t group = 0;
    std::int32_t gives_rights = 0;  // its file has a set-ID bit or capabilities
};

/// How a copy tells what became of its start: it notes it in its record, then signals the event, an
/// eventfd of the whole group. Both are targets of moves: these are their numbers in the child.
struct copy_channel {
    std::int32_t record = -1;
    std::int32_t started_event = -1;
};

/// The head of the block: trivially copyable, because it goes through a file.
struct worker_order {
    std::uint64_t base = 0;  // the address that the tables were last made right for
    std::uint32_t size = 0;  // of the block, in bytes

    text_table candidates;  // paths to try in turn: ENOENT, ENOTDIR go on, EACCES is remembered
    text_table argv;
    text_table envp;
    list_ref<pid_field> pid_fields;
    list_ref<std::int32_t> slots;     // numbers in the process that makes the child
    list_ref<descriptor_move> moves;  // 0, 1, 2 without one are inherited; all else is closed
    list_ref<std::int32_t> sources;   // for the child: where the descriptor of each move is now
    list_ref<std::int32_t> kept;      // for the child: what it needs of 3 and above, ascending

    slot directory = -1;           // fchdir(2) here first (the caller's directory)
    text_ref working_directory;    // then chdir(2) here
    list_ref<std::byte> affinity;  // a mask; CPUs that are gone do not fail a start
    std::int32_t umask = -1;  // for umask(2); -1: as it is
    slot cgroup = -1;              // the directory of the cgroup to be born in, or to enter first
    slot guard_connection = -1;    // who is told of the child before its program runs
    guard_message guard;
    own_program itself;
    copy_channel channel;            // of a copy
    std::uint64_t record_inode = 0;  // of a function worker

    std::int32_t parent_death_signal = 0;  // 0: none
    std::int32_t parent = 0;         // the process that must still be the parent after arming it
    std::int32_t process_group = 0;  // to enter; 0: see own_process_group
    std::int32_t own_process_group = 1;
    std::int32_t own_session = 0;       // then it leads a process group as well
    std::int32_t cgroup_is_needed = 0;  // 0: a child that can't enter it runs on outside

    // Of an order that stands in its block. Usable between clone and exec.

    template <class T>
    COHORT_BEFORE_EXEC T* begin(list_ref<T> list) noexcept {
        return reinterpret_cast<T*>(reinterpret_cast<char*>(this) + list.offset);
    }
    template <class T>
    COHORT_BEFORE_EXEC const T* begin(list_ref<T> list) const noexcept {
        return reinterpret_cast<const T*>(reinterpret_cast<const char*>(this) + list.offset);
    }
    /// Null for none.
    COHORT_BEFORE_EXEC const char* text(text_ref ref) const noexcept {
        return ref.offset == 0 ? nullptr : reinterpret_cast<const char*>(this) + ref.offset;
    }
    COHORT_BEFORE_EXEC char* const* table(text_table texts) const noexcept {
        return reinterpret_cast<char* const*>(reinterpret_cast<const char*>(this) + texts.offset);
    }
    /// The number in a slot; -1 for none.
    COHORT_BEFORE_EXEC int descriptor(slot at) const noexcept {
        return at < 0 ? -1 : begin(slots)[at];
    }
    COHORT_BEFORE_EXEC guard_order guarded_by() const noexcept {
        return {descriptor(guard_connection), guard};
    }
    std::span<const descriptor_move> all_moves() const noexcept {
        return {begin(moves), moves.count};
    }
};
static_assert(std::is_trivially_copyable_v<worker_order>);

/// An order's block. Copies and moves; its addresses are right after rebase().
class order_block {
public:
    order_block() = default;
    /// @param size  in bytes, at least a head's
    explicit order_block(std::size_t size) : words_((size + 7) / 8) {}

    worker_order& operator*() noexcept { return *reinterpret_cast<worker_order*>(words_.data()); }
    const worker_order& operator*() const noexcept {
        return *reinterpret_cast<const worker_order*>(words_.data());
    }
    worker_order* operator->() noexcept { return &**this; }
    const worker_order* operator->() const noexcept { return &**this; }
    std::span<std::byte> bytes() noexcept { return std::as_writable_bytes(std::span(words_)); }
    std::span<const std::byte> bytes() const noexcept { return std::as_bytes(std::span(words_)); }

    /// Before each child: makes the tables right for where the block stands, and the child's two
    /// lists as they are at its birth.
    void rebase() noexcept;
    /// The numbers of its slots.
    std::span<const std::int32_t> descriptors() const noexcept {
        return {(*this)->begin((*this)->slots), (*this)->slots.count};
    }

private:
    std::vector<std::uint64_t> words_;  // aligned for all that stands in it
};

/// A block that has come by way of a file, with the descriptors of its slots.
/// @throws std::runtime_error  it is shorter than it says, or descriptors are missing
void take_over(order_block& arrived, std::span<const int> descriptors);

}  // namespace cohort::orders
