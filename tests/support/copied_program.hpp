// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "reporter.hpp"
#include "scratch.hpp"

#include <filesystem>
#include <stdexcept>
#include <string>

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace cohort::test {

/// A copy of a program that every user may execute. It can have set-ID bits or a capability.
class copied_program {
public:
    /// The id of a user and a group without rights.
    static constexpr unsigned nobody = 65'534;

    /// @return false: not possible here; the case is marked as skipped, with the reason
    static bool can_have_rights() {
        if (::geteuid() != 0) {
            skip("needs root, to make a set-user-ID program and to become another user");
            return false;
        }
        if (::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) {
            skip("set-user-ID bits are ignored here (no_new_privs)");
            return false;
        }
        struct statvfs file_system {};
        const auto temporary = std::filesystem::temp_directory_path();
        if (::statvfs(temporary.c_str(), &file_system) == 0 &&
            (file_system.f_flag & ST_NOSUID) == 0)
            return true;
        skip(temporary.string() + " ignores set-user-ID bits (nosuid)");
        return false;
    }

    copied_program(const char* program, mode_t mode, uid_t owner = 0, gid_t group = 0) {
        std::filesystem::copy_file(program, path());
        directory_.open_to_all();
        if (::chown(path().c_str(), owner, group) != 0 || ::chmod(path().c_str(), mode) != 0)
            throw std::runtime_error("no copy of " + std::string(program));
    }

    std::string path() const { return directory_.file("copy"); }

    /// Like `setcap cap_net_raw+ep`. @return false: the file system cannot store capabilities
    bool give_capability() const {
        vfs_cap_data data{};
        data.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE;
        data.data[0].permitted = 1U << CAP_NET_RAW;
        return ::setxattr(path().c_str(), "security.capability", &data, sizeof data, 0) == 0;
    }

private:
    scratch_directory directory_;
};

}  // namespace cohort::test
