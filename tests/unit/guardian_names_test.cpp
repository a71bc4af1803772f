// SPDX-License-Identifier: BSL-1.0
// The guardian's search for names of shared memory, in a directory of the test's own.
#include "base/files/name_mark.hpp"
#include "base/files/named_file.hpp"
#include "base/files/settings.hpp"
#include "base/sys/descriptors.hpp"
#include "procfs.hpp"
#include "scratch.hpp"
#include "start/guardian/program/names.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <set>
#include <string>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace guardian_names_test {

using namespace cohort;
using namespace cohort::test;

namespace {

constexpr std::uint64_t session = 0xabc;

std::string prefix_text(unsigned user, std::uint64_t of) {
    start::names_prefix prefix;
    start::set_prefix(prefix, user, of);
    return prefix.text;
}

base::unique_fd opened(const std::string& path, int flags = O_RDONLY) {
    return base::unique_fd(::open(path.c_str(), flags | O_CLOEXEC));
}

/// Searches a directory as the guardian does.
int remove_unused_names(const scratch_directory& directory) {
    const auto open = opened(directory.path(), O_RDONLY | O_DIRECTORY);
    start::names_prefix prefix;
    start::set_prefix(prefix, ::geteuid(), session);
    return start::remove_unused_names(open.get(), prefix, ::geteuid());
}

}  // namespace

TEST_CASE("guardian names: the prefix is what the names of this session begin with") {
    CHECK(prefix_text(::geteuid(), base::session()) == base::prefix_of_session());
    CHECK(prefix_text(0, 0xab) == "cohort.0.0000000000ab.");
    CHECK(prefix_text(4294967295, 0xfedcba987654) == "cohort.4294967295.fedcba987654.");
}

TEST_CASE("guardian names: a name begins with a prefix only if it has all of it") {
    CHECK(start::begins_with("cohort.1.a.2.3", "cohort.1.a."));
    CHECK(start::begins_with("cohort.1.a.", "cohort.1.a."));
    CHECK_FALSE(start::begins_with("cohort.1.a", "cohort.1.a."));
    CHECK_FALSE(start::begins_with("cohort.1.b.2.3", "cohort.1.a."));
    CHECK_FALSE(start::begins_with("", "cohort.1.a."));
}

TEST_CASE("guardian names: all unused files of the session are removed, and nothing else") {
    const scratch_directory directory;
    const auto own = prefix_text(::geteuid(), session);
    for (int i = 0; i < 100; ++i)  // more than one read of the directory returns
        directory.write(own + "7." + std::to_string(i), "", base::marked_mode);
    const auto used = directory.write(own + "8.used", "", base::marked_mode);
    directory.write(own + "8.readable", "", 0640);
    directory.write(own + "8.setuid", "", 04600);
    directory.write(own + "8.of_shm_open", "", 0600);
    directory.write(own + "8.readable_and_marked", "", 01640);
    const auto file = directory.write("file", "", base::marked_mode);
    directory.write(own.substr(0, own.size() - 1), "", base::marked_mode);
    directory.write(prefix_text(::geteuid(), session + 1) + "7.1", "", base::marked_mode);
    directory.write(prefix_text(::geteuid() + 1, session) + "7.1", "", base::marked_mode);
    REQUIRE(::symlink(file.c_str(), directory.file(own + "8.link").c_str()) == 0);
    REQUIRE(::mkfifo(directory.file(own + "8.fifo").c_str(), base::marked_mode) == 0);
    REQUIRE(::mkdir(directory.file(own + "8.directory").c_str(), base::marked_mode) == 0);
    const auto before = names_in(directory.path());

    auto user = opened(used);
    REQUIRE(::flock(user.get(), LOCK_SH) == 0);
    CHECK(remove_unused_names(directory) == 1);
    auto left = before;
    for (int i = 0; i < 100; ++i)
        left.erase(own + "7." + std::to_string(i));
    CHECK(names_in(directory.path()) == left);

    user.reset();
    CHECK(remove_unused_names(directory) == 0);
    left.erase(own + "8.used");
    CHECK(names_in(directory.path()) == left);
}

TEST_CASE("guardian names: while a name is in use the guardian tries again, for a second") {
    const scratch_directory directory;
    const auto open = opened(directory.path(), O_RDONLY | O_DIRECTORY);
    start::names_prefix prefix;
    start::set_prefix(prefix, ::geteuid(), session);
    const auto name = prefix.text + std::string("7.1");
    auto user = opened(directory.write(name, "", base::marked_mode));
    REQUIRE(::flock(user.get(), LOCK_SH) == 0);

    long slept_ms = 0;
    const auto sleep = [&](long pause_ms) { slept_ms += pause_ms; };
    start::remove_names(open.get(), prefix, ::geteuid(), sleep);
    CHECK(slept_ms == 1023);
    CHECK(names_in(directory.path()) == std::set{name});

    int pauses = 0;
    const auto user_goes = [&](long) {
        if (++pauses == 3)
            user.reset();
    };
    start::remove_names(open.get(), prefix, ::geteuid(), user_goes);
    CHECK(pauses == 3);
    CHECK(names_in(directory.path()).empty());

    slept_ms = 0;
    start::remove_names(open.get(), prefix, ::geteuid(), sleep);
    start::remove_names(-1, prefix, ::geteuid(), sleep);
    CHECK(slept_ms == 0);
}

TEST_CASE("guardian names: a name that was given to another file after it was opened stays") {
    const scratch_directory directory;
    const auto file = opened(directory.write("name", "first", base::marked_mode));
    directory.write("other", "second", base::marked_mode);
    REQUIRE(::rename(directory.file("other").c_str(), directory.file("name").c_str()) == 0);
    const auto open = opened(directory.path(), O_RDONLY | O_DIRECTORY);
    CHECK_FALSE(start::remove_or_is_used(open.get(), "name", file.get(), ::geteuid()));
    CHECK(read_file(directory.file("name")) == "second");
}

TEST_CASE("guardian names: a file of another user stays") {
    const scratch_directory directory;
    const auto file = opened(directory.write("name", "", base::marked_mode));
    const auto open = opened(directory.path(), O_RDONLY | O_DIRECTORY);
    CHECK_FALSE(start::remove_or_is_used(open.get(), "name", file.get(), ::geteuid() + 1));
    CHECK(names_in(directory.path()).size() == 1);
}

}  // namespace guardian_names_test
