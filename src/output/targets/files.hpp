// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"
#include "output/lines/rotation.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace cohort::output {

struct base_directory {
    std::shared_ptr<base::unique_fd> directory;  // null: AT_FDCWD
    std::error_code error;                       // why it can't be opened
};

/// The directories to which the paths of workers are relative. Each is opened once, because many
/// workers share one. They are for the moment in which the files of a group are opened; who needs
/// one for longer shares it.
class base_directories {
public:
    /// @param callers_directory  a descriptor, borrowed; -1: the directory of this process
    explicit base_directories(int callers_directory) noexcept : caller_(callers_directory) {}

    /// The base of `path`. An absolute path needs none, and the working directory of its worker may
    /// not be searchable for this program's user.
    /// @param working_directory  of the worker: absolute, relative to the caller's, or empty
    const base_directory& of(const std::string& working_directory, const std::string& path);

private:
    const int caller_;
    std::map<std::string, base_directory> opened_;  // by working directory
};

/// The directory that options::logs() makes for the first attempts of a group's workers, attempt_0,
/// as a descriptor: workers may move it, remove it and put links in its place. Those of later
/// attempts stand beside it. Any thread, but for make().
class log_directory {
public:
    struct workers_of_host {
        int first;  // index
        int count;
    };

    /// Makes the directory and those above it. Before all other calls, and once.
    /// @param base  of a relative path: a descriptor of a directory. null: AT_FDCWD
    /// @param of_host  the workers are a part of a group on hosts, which may share the directory:
    ///                 it may be there already, but not the directories of these workers
    /// @return an error if it is there already, and where no descriptor is left
    [[nodiscard]] std::error_code make(std::shared_ptr<base::unique_fd> base, std::string path,
                                       std::optional<workers_of_host> of_host = {});
    /// The hosts make it: here is only what stands beside it, if anything. Instead of make().
    void expect(std::string path) { path_ = std::move(path); }

    /// Opens the file `index`/`name` in the directory of this attempt, to write it anew. Never
    /// makes attempt_0 again, and follows no link. May block.
    base::unique_fd open(int attempt, int index, const char* name, std::error_code& error) const;
    /// The same for a file that stands beside the directory. Instead of make() it was expect()ed:
    /// EEXIST if the file is there already.
    base::unique_fd open_beside(const char* name, std::error_code& error) const;

    /// Removes it with the files that the library makes there, if make() has made it and it still
    /// has its path. For a start that failed: workers that live write on to files that have no name
    /// any more. May block.
    /// @param first  the index of the first worker
    void remove(int first, std::size_t workers) const;

private:
    std::error_code claim(const workers_of_host& workers) const;

    std::shared_ptr<base::unique_fd> base_;
    std::string path_;
    base::unique_fd made_;  // kept open, so that its inode is not used again
};

}  // namespace cohort::output

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

/// How a file is replaced when it has grown too large.
struct rotated_path {
    rotation when;
    std::string path;
    std::shared_ptr<const base::unique_fd> base;  // of the path; null: AT_FDCWD
};

/// An open file that one thread at a time writes to, by a write(2) that may wait. The other members
/// than write() and close() may be called meanwhile.
class written_file {
public:
    /// Only a regular file is rotated.
    explicit written_file(base::unique_fd file, std::optional<rotated_path> rotate = {});
    /// Writes to a descriptor of others: never closes it and never changes its flags.
    explicit written_file(int borrowed) noexcept : fd_(borrowed) {}

    /// Writes all of `text`, and rotates between its lines. In a line that is spread over several
    /// calls it rotates only if the line is longer than lines usually may be.
    [[nodiscard]] std::error_code write(std::string_view text);
    void close() noexcept;

    bool is_owned() const noexcept { return is_owned_; }
    /// How many bytes were written, to this file and those before it.
    std::uint64_t written() const noexcept { return written_; }
    /// How many bytes of the present write() are not yet written.
    std::uint64_t unwritten() const noexcept { return unwritten_; }
    /// Why a file was not replaced although it had grown too large.
    std::error_code not_rotated() const noexcept { return {not_rotated_, std::system_category()}; }

private:
    std::size_t next_write(std::string_view text) const noexcept;
    std::error_code write_all(std::string_view text) noexcept;
    void count(std::string_view written) noexcept;
    std::error_code rotate();
    std::error_code make_way(int base);

    base::unique_fd file_;  // empty: borrowed or closed
    int fd_ = -1;
    bool is_owned_ = false;
    std::optional<rotated_path> rotate_;
    std::uint64_t size_ = 0;   // of a file that is rotated
    std::size_t unended_ = 0;  // how many bytes the file has after its last newline
    std::atomic<std::uint64_t> written_ = 0;
    std::atomic<std::uint64_t> unwritten_ = 0;
    std::atomic<int> not_rotated_ = 0;  // errno
};

}  // namespace cohort::output
