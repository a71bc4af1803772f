// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"

#include <string>
#include <system_error>

// Files that workers' text goes into. Their paths are relative to a base: a descriptor of a
// directory, or AT_FDCWD.
namespace cohort::output {

/// A base as openat(2) and its like take it. @param directory  null: AT_FDCWD
[[nodiscard]] int number_of(const base::unique_fd* directory) noexcept;

/// The directory that a worker's relative paths mean, by O_PATH.
/// @param callers_directory  a descriptor; -1: the directory of this process
/// @param working_directory  of the worker: absolute, relative to the caller's, or empty
[[nodiscard]] base::unique_fd open_base(int callers_directory, const std::string& working_directory,
                                        std::error_code& error);

/// Makes the directories that `path_of_file` lies in, if they are missing, with mode 0777 less the
/// umask.
[[nodiscard]] std::error_code make_directories(int base, const std::string& path_of_file);

/// What happens to the text that a file has when it is opened.
enum class old_text { is_kept, is_dropped };

/// Opens a file to append to it, and makes it if it is missing, as well as its directories. The
/// descriptor blocks and is close-on-exec. Never waits for the reader of a FIFO: ENXIO, if there is
/// none.
[[nodiscard]] base::unique_fd open_output(int base, const std::string& path, old_text before,
                                          std::error_code& error);

/// Renames `path` to `path.1`, after `path.1` to `path.2` and so on. This ends at the first number
/// that no file has, so the time depends on the files that are there and not on `kept`. Of the kept
/// ones the oldest is replaced.
/// @param kept  how many older files there may be, 1 at least
[[nodiscard]] std::error_code rename_older(int base, const std::string& path, int kept);

/// Makes a file in the place of one that was renamed. EEXIST if something is there again, also a
/// symbolic link: others who may write into the directory could have put it there to have another
/// file overwritten. Makes no directories: if somebody has removed them, then on purpose.
[[nodiscard]] base::unique_fd open_next(int base, const std::string& path, std::error_code& error);

/// Opens a file of `directory` for new text, and makes it if it is missing. ELOOP for a symbolic
/// link. Makes no directories.
[[nodiscard]] base::unique_fd open_anew(int directory, const std::string& name,
                                        std::error_code& error);

/// Whether the file takes all that is written without a reader.
[[nodiscard]] bool is_regular(int fd) noexcept;

/// Whether two descriptors are of the same file, pipe, socket or terminal.
[[nodiscard]] bool is_same_file(int a, int b) noexcept;

}  // namespace cohort::output
