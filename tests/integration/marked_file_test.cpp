// SPDX-License-Identifier: BSL-1.0
// Arrays that arrive in files of /dev/shm that another program made, with the mark of the library's
// files or without. Their names stay, and what its owner could truncate is not mapped.
#include "names_support.hpp"
#include "start_support.hpp"

#include <cohort/cohort.hpp>

#include <doctest/doctest.h>

#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace marked_file_test {

using namespace cohort::test;

namespace {

constexpr mode_t plain = 0600;
constexpr mode_t marked = 01600;  // as the library marks its own

/// Another program's file in /dev/shm. It begins with a number.
class foreign_file {
public:
    explicit foreign_file(mode_t mode)
        : file_(::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) {
        const int number = 12'345;
        REQUIRE(file_ >= 0);
        REQUIRE(::fchmod(file_, mode) == 0);
        REQUIRE(::write(file_, &number, sizeof number) == sizeof number);
    }
    foreign_file(const foreign_file&) = delete;
    foreign_file& operator=(const foreign_file&) = delete;
    ~foreign_file() {
        ::close(file_);
        ::unlink(path_.c_str());
    }
    void lock() const { REQUIRE(::flock(file_, LOCK_SH) == 0); }
    bool has_name() const {
        struct stat mine {};
        struct stat named {};
        return ::fstat(file_, &mine) == 0 && ::stat(path_.c_str(), &named) == 0 &&
               mine.st_ino == named.st_ino;
    }
    const std::string& name() const noexcept { return name_; }

private:
    const std::string name_ = "cohort-test-marked-" + std::to_string(::getpid());
    const std::string path_ = "/dev/shm/" + name_;
    const int file_;
};

/// What a host prints that gets the file as an array.
template <class... How>
std::string received(const foreign_file& file, How... how) {
    return printed_by(cohort::command(COHORT_PROGRAM_OTHER_HOST, "receives", file.name(), how...));
}

}  // namespace

TEST_CASE("marked file: a host that has not asked for names refuses every file with a name") {
    const leak_guard guard;
    for (const auto mode : {plain, marked}) {
        const foreign_file file(mode);
        file.lock();
        const auto text = received(file, "locked");
        CAPTURE(text);
        CHECK(text.find("would end this process by SIGBUS") != text.npos);
        CHECK(file.has_name());
    }
}

TEST_CASE("marked file: the name of a file that was marked by hand stays") {
    if (names_are_denied())
        return;
    const leak_guard guard;
    const foreign_file file(marked);
    const auto text = received(file, "names");
    CAPTURE(text);
    CHECK(text.find("is another program's") != text.npos);
    CHECK(file.has_name());
}

TEST_CASE("marked file: a file without the mark is refused, as it has no seals") {
    if (names_are_denied())
        return;
    const leak_guard guard;
    const foreign_file file(plain);
    const auto text = received(file, "names", "locked");
    CAPTURE(text);
    CHECK(text.find("not sealed") != text.npos);
    CHECK(file.has_name());
}

TEST_CASE("marked file: one that its users lock is taken, and its name stays while one does") {
    if (names_are_denied())
        return;
    const leak_guard guard;
    const foreign_file file(marked);
    file.lock();
    CHECK(received(file, "names", "locked") == "12345\n");
    CHECK(file.has_name());
}

}  // namespace marked_file_test
