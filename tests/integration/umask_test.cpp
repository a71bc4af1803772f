// SPDX-License-Identifier: BSL-1.0
#include "start_support.hpp"

#include <filesystem>

#include <sys/stat.h>

namespace umask_test {

using namespace cohort::test;
namespace fs = std::filesystem;

namespace {

int mask_of(int) {
    const mode_t mask = ::umask(0);
    ::umask(mask);
    return static_cast<int>(mask);
}

}  // namespace

TEST_CASE("umask: it is the worker's own, by every way of starting") {
    const leak_guard guard;
    const auto how = cohort::options(1).umask(0135);
    CHECK(ended(cohort::function<mask_of>(), how).outcomes.at(0).result<int>() == 0135);
    CHECK(printed_by(cohort::command("sh", "-c", "umask"), how) == "0135\n");
    CHECK(printed_by(cohort::command("sh", "-c", "umask").umask(011), how) == "0011\n");
}

TEST_CASE("umask: the files that stdout_to and stderr_to make have the worker's") {
    const leak_guard guard;
    const scratch_directory directory;
    const auto how = cohort::options(1)
                         .working_directory(directory.path())
                         .umask(027)
                         .stdout_to("out")
                         .stderr_to("err");
    (void)ended(cohort::command("true"), how);
    for (const auto* name : {"out", "err"})
        CHECK(fs::status(directory.file(name)).permissions() == fs::perms(0640));
}

}  // namespace umask_test
