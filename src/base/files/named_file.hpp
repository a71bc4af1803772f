// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>

namespace cohort::base {

// Shared memory with a name: a file in /dev/shm. A process that uses it holds a shared lock
// (flock(2)). The lock belongs to the open file, and a mapping keeps the file open, as a message
// does that carries its descriptor. So the kernel drops the lock when the last user is gone,
// however it ended. Whoever gets an exclusive lock may remove the name: nobody uses the memory any
// more. Nobody registers anywhere, and nothing is counted.
//
// Other programs' files in /dev/shm hold no such lock although they are used. The library's own
// bear a mark, see name_mark.hpp, and no others are removed.

/// Opens the directory of the names, /dev/shm.
base::unique_fd open_directory(std::error_code& error) noexcept;

/// Makes a file of `bytes` bytes, all zero and reserved. It has its lock before it has its name.
/// @param name  empty: one is drawn; else changed by nothing. EEXIST: it is in use, or another
///              program's
/// @param what  the memory for the text of an error
/// @throws sharing_error
base::unique_fd create_named(std::size_t bytes, std::string& name, const std::string& what);

/// Opens a file by its name and locks it if it bears the library's mark. Only a regular file of
/// this process' user, to which nobody else has access. @param flags  O_RDONLY or O_RDWR
/// @param error  ENOENT: there is no such name. EBUSY: it is locked by somebody who removes it
base::unique_fd open_named(const std::string& name, int flags, std::error_code& error);

/// The name of an open file; empty: it is no file of ours in /dev/shm, or its name is gone.
std::string name_of(int descriptor);

/// Whether the library's file of this name is in use: a process, or a message that carries its
/// descriptor, holds a lock on it. Also true if that can't be found out now.
bool is_used(const std::string& name) noexcept;

/// What became of a name.
enum class removal {
    removed,  // this call has removed it
    used,     // its memory is used, or it can't be found out now whether it is
    none,     // there is no such name, or it is not the library's
};
/// Removes a name of the library's if nobody uses its memory.
removal remove_unused(const std::string& name) noexcept;

/// How many entries of the directory a sweep reads at all, because anybody may fill it meanwhile.
inline constexpr std::size_t most_entries = std::size_t{1} << 20;
/// How many are read while somebody waits.
inline constexpr std::size_t few_entries = std::size_t{1} << 14;

/// What a sweep has done.
struct swept {
    std::size_t removed = 0;
    bool has_used = false;     // some are used
    bool is_complete = false;  // the whole directory was read
};
/// Removes names with this prefix whose memory nobody uses.
/// @param most  how many entries of the directory are read; others may be left then
swept sweep(std::string_view prefix, std::size_t most = most_entries);
/// What the names begin with that processes of this user draw, and of them those of this session.
std::string prefix_of_user();
std::string prefix_of_session();

/// Why memory can't have names here.
struct names_answer {
    std::string why;          // empty: it can
    bool may_change = false;  // something was short just then
};
/// Tried until the answer can't change any more.
names_answer why_no_names();

}  // namespace cohort::base
