// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/raw_call.hpp"
#include "protocol/order/guard.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <sys/types.h>

namespace cohort::protocol {

/// A text in the block of an order, followed by a NUL that `length` does not count. Offset 0 means
/// no text, because the head stands there.
struct text_ref {
    std::uint32_t offset = 0;
    std::uint32_t length = 0;
};

/// What a child does to itself before its program or function begins: makes a system call, or
/// writes to a file. All kinds of child take the same steps, so a new setting needs no code there.
struct child_step {
    text_ref stage;         // what spawn_error::stage() says if it fails: "nice"
    std::int32_t call = 0;  // the number of the system call, if there is no `file`
    std::int32_t may_fail = 0;
    std::int64_t arguments[4] = {};
    std::int32_t data_at =
        -1;         // the argument in whose place the address of `data` stands; -1: none
    text_ref data;  // any bytes
    std::int32_t rest_at =
        -1;  // the argument in whose place the address of a part of `data` stands
    std::uint32_t rest_offset = 0;  // where that part begins
    text_ref file;                  // the file to which `data` is written
    text_ref told;                  // for an error's text: "setrlimit(open_files, 4096)"
};

/// What a worker gets as one of its standard streams.
struct stream_source {
    enum class kind {
        inherit,  // this program's own
        place,    // the descriptor `fd` of this process
        open,     // the file `path`, which the child opens
        join,     // what the worker's stdout is
    };
    kind what = kind::inherit;
    int fd = -1;
    std::string path;
    int flags = 0;             // of open(2)
    bool is_own_pipe = false;  // `fd` is of a pipe that was made for this worker
};

using stream_sources = std::array<stream_source, 3>;  // by the number of the stream

// All that one start needs, as one block of bytes: the head `worker_order`, then its lists, then
// its texts. All kinds of child read the same bytes: the child between clone and exec, a forked
// copy, and the fork server's copy, which gets them through a file. Places inside the block are
// given as offsets. Only the tables for execve(2) hold addresses; rebase() sets them.

/// `count` elements in the block.
template <class T>
struct list_ref {
    std::uint32_t offset = 0;
    std::uint32_t count = 0;
};

/// A table of addresses of texts, as execve(2) takes it. After the last comes a null pointer, which
/// `count` does not count.
struct text_table {
    std::uint32_t offset = 0;
    std::uint32_t count = 0;
};

/// An index into worker_order::slots, the descriptors that the start needs; -1: none.
using slot = std::int32_t;

/// What the child puts at descriptor `target`: a copy of the one in the slot `source`, or the file
/// `path`, which the child opens, or a copy of what an earlier move put at descriptor `joined`.
/// With none of these, `target` is closed.
struct descriptor_move {
    std::int32_t target = -1;
    slot source = -1;
    text_ref path;
    std::int32_t open_flags = 0;  // O_NONBLOCK holds for the call of open(2) only
    std::int32_t joined = -1;
    std::int32_t memory_file = 0;  // not 0: the child may reopen it by its path in /proc instead
};

/// A place in a text where the child writes its pid in decimal, then the suffix and a NUL. The
/// place has room for 10 digits, the suffix and the NUL.
struct pid_field {
    std::uint32_t offset = 0;
    text_ref suffix;  // "/fd/60"
};

/// For a start that executes this process' own program, as a worker or as the fork server. Such a
/// program accepts a mark only if its own user made the file that the mark names. It must not gain
/// rights that this process does not have or has given up.
struct own_program {
    std::int32_t mark = -1;  // the child's descriptor that the mark names; -1: another program
    uid_t owner = 0;         // of that file
    gid_t group = 0;
    std::int32_t gives_rights = 0;  // its file has a set-ID bit or capabilities
};

/// The descriptors that a copy needs besides its order, by their numbers in the child: both are
/// targets of moves.
struct copy_channel {
    std::int32_t record = -1;
    std::int32_t reports = -1;  // the pipe for its copy_report, which the whole group shares
    std::uint32_t ticket = 0;   // the copy's own
};

/// How the start of a copy went. The copy writes it once, in one write, before its function is
/// called. (A worker that is executed reports that by way of memory that it shares with the
/// starter.)
struct copy_report {
    std::uint32_t ticket = 0;
    std::int32_t stage = 0;  // the stage at which the start failed, else 0
    std::int32_t error = 0;
    std::int32_t item = -1;
    std::int32_t is_unguarded = 0;  // the guardian, which was too slow, does not know of the copy
};

/// The head of the block: trivially copyable, because it goes through a file.
struct worker_order {
    std::uint64_t base = 0;  // the block's address at the last rebase(), which the tables hold
    std::uint32_t size = 0;  // of the block, in bytes

    /// Paths to try in turn: on after ENOENT, ENOTDIR and EACCES. EACCES wins as the start's error.
    text_table candidates;
    text_table argv;
    text_table envp;
    list_ref<pid_field> pid_fields;
    list_ref<std::int32_t> slots;     // descriptors of the process that makes the child
    list_ref<descriptor_move> moves;  // 0, 1, 2 without a move are inherited; others are closed
    list_ref<std::int32_t> sources;   // for the child: where the descriptor of each move is now
    list_ref<std::int32_t> kept;      // for the child: those from 3 on that it needs, ascending

    slot directory = -1;           // fchdir(2) here first (the caller's directory)
    text_ref working_directory;    // then chdir(2) here
    list_ref<std::byte> affinity;  // a mask; see affinity_is_needed
    list_ref<child_step> steps;    // most when the descriptors are in their places
    std::int32_t umask = -1;       // for umask(2); -1: inherited
    slot cgroup = -1;              // directory of the cgroup to be born in, or to enter first
    slot guard_connection = -1;    // the guardian gets the child before its program runs
    guard_message guard;
    own_program itself;
    copy_channel channel;            // copies only
    std::uint64_t record_inode = 0;  // function workers only

    std::int32_t parent_death_signal = 0;  // 0: none
    std::int32_t parent = 0;               // the parent's pid, checked after the signal was armed
    std::int32_t process_group = 0;        // the group to enter; 0: see own_process_group
    std::int32_t own_process_group = 1;
    std::int32_t own_session = 0;         // a session leader leads a process group as well
    std::int32_t cgroup_is_needed = 0;    // 0: a child that can't enter it runs on outside
    std::int32_t changes_user = 0;        // one of the steps does
    std::int32_t affinity_is_needed = 0;  // 0: CPUs that are gone do not fail a start
    /// So many of the steps are taken before the child opens a directory or a file.
    std::uint32_t first_steps = 0;

    // These work only on an order inside its block. They may be called between clone and exec.

    template <class T>
    COHORT_BEFORE_EXEC T* begin(list_ref<T> list) noexcept {
        return reinterpret_cast<T*>(reinterpret_cast<char*>(this) + list.offset);
    }
    template <class T>
    COHORT_BEFORE_EXEC const T* begin(list_ref<T> list) const noexcept {
        return reinterpret_cast<const T*>(reinterpret_cast<const char*>(this) + list.offset);
    }
    /// Null if there is no text.
    COHORT_BEFORE_EXEC const char* text(text_ref ref) const noexcept {
        return ref.offset == 0 ? nullptr : reinterpret_cast<const char*>(this) + ref.offset;
    }
    COHORT_BEFORE_EXEC char* const* table(text_table texts) const noexcept {
        return reinterpret_cast<char* const*>(reinterpret_cast<const char*>(this) + texts.offset);
    }
    /// The descriptor in a slot; -1 if `at` is -1.
    COHORT_BEFORE_EXEC int descriptor(slot at) const noexcept {
        return at < 0 ? -1 : begin(slots)[at];
    }
    COHORT_BEFORE_EXEC guard_order guarded_by() const noexcept {
        return {descriptor(guard_connection), guard};
    }
    std::span<const descriptor_move> all_moves() const noexcept {
        return {begin(moves), moves.count};
    }
    std::span<const child_step> all_steps() const noexcept { return {begin(steps), steps.count}; }
};
static_assert(std::is_trivially_copyable_v<worker_order>);

/// The block of an order. Copyable and movable; its addresses are valid only after rebase().
class order_block {
public:
    order_block() = default;
    /// @param size  in bytes, at least that of a head
    explicit order_block(std::size_t size) : words_((size + 7) / 8) {}

    worker_order& operator*() noexcept { return *reinterpret_cast<worker_order*>(words_.data()); }
    const worker_order& operator*() const noexcept {
        return *reinterpret_cast<const worker_order*>(words_.data());
    }
    worker_order* operator->() noexcept { return &**this; }
    const worker_order* operator->() const noexcept { return &**this; }
    std::span<std::byte> bytes() noexcept { return std::as_writable_bytes(std::span(words_)); }
    std::span<const std::byte> bytes() const noexcept { return std::as_bytes(std::span(words_)); }

    /// Call this before each child is made. Sets the tables to the block's present address, and the
    /// child's two lists, sources and kept, to what holds at its birth.
    void rebase() noexcept;
    /// The descriptors in its slots.
    std::span<const std::int32_t> descriptors() const noexcept {
        return {(*this)->begin((*this)->slots), (*this)->slots.count};
    }

private:
    std::vector<std::uint64_t> words_;  // 8 bytes each, so that all in the block is aligned
};

/// Completes a block that was read from a file: puts `descriptors` into its slots and rebases it.
/// @throws std::runtime_error  the block is shorter than its head says, the order names a place
///                             that is not inside the block, or descriptors are missing
void take_over(order_block& arrived, std::span<const int> descriptors);

/// How many elements each list of an order has.
struct list_sizes {
    std::uint32_t candidates = 0;
    std::uint32_t argv = 0;
    std::uint32_t envp = 0;
    std::uint32_t pid_fields = 0;
    std::uint32_t slots = 0;
    std::uint32_t moves = 0;
    std::uint32_t affinity = 0;
    std::uint32_t steps = 0;
};

/// Puts the lists behind the head, one after the other.
/// @return where the texts begin, counted from the head
std::uint64_t lay_out(worker_order& head, const list_sizes& sizes) noexcept;

/// Whether the lists are where lay_out puts lists of these sizes: inside the block, and apart.
/// @param texts  set to where the texts begin
bool is_laid_out(const worker_order& order, std::uint64_t& texts) noexcept;

}  // namespace cohort::protocol
