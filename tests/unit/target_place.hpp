// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/descriptors.hpp"
#include "output/targets/files.hpp"
#include "scratch.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <system_error>

#include <unistd.h>

/// For the tests of the files that workers' text goes into.
namespace cohort::test {

/// A directory, and the error of the latest opening in it.
struct target_place {
    scratch_directory scratch;
    std::error_code error;
    base::unique_fd base = output::open_base(-1, scratch.path(), error);

    base::unique_fd open(const std::string& path,
                         output::old_text before = output::old_text::is_dropped) {
        return output::open_output(base.get(), path, before, error);
    }
    std::string text(const std::string& name) const { return read_file(scratch.file(name)); }
};

inline void put(const base::unique_fd& file, std::string_view text) {
    REQUIRE(::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

}  // namespace cohort::test
