// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace cohort::output {

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
