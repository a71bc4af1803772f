// SPDX-License-Identifier: BSL-1.0
#include "scratch.hpp"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>

#include <sys/stat.h>

namespace fs = std::filesystem;

namespace cohort::test {

scratch_directory::scratch_directory() : scratch_directory(fs::temp_directory_path().string()) {}

scratch_directory::scratch_directory(const std::string& place)
    : path_(place + "/cohort-test-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr)
        throw std::system_error(errno, std::generic_category(), "mkdtemp " + path_);
}

scratch_directory::~scratch_directory() {
    std::error_code ignored;  // the leak guard sees files that stay
    fs::remove_all(path_, ignored);
}

void scratch_directory::open_to_all(fs::perms more) const {
    constexpr auto find = fs::perms::others_exec | fs::perms::group_exec;
    // TMPDIR is a directory of the test program.
    fs::permissions(fs::path(path_).parent_path(), find, fs::perm_options::add);
    fs::permissions(path_, find | more, fs::perm_options::add);
}

std::string scratch_directory::write(std::string_view name, std::string_view text,
                                     unsigned mode) const {
    const auto path = file(name);
    {
        std::ofstream out(path, std::ios::binary | std::ios::trunc);
        out << text;
        out.close();
        if (!out)
            throw std::runtime_error("cannot write " + path);
    }
    if (::chmod(path.c_str(), mode) != 0)
        throw std::system_error(errno, std::generic_category(), "chmod " + path);
    return path;
}

std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace cohort::test
