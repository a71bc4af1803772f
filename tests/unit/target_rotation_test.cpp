// SPDX-License-Identifier: BSL-1.0
// How the files that workers' text goes into are rotated.
#include "output/targets/files.hpp"
#include "reporter.hpp"
#include "sys_support.hpp"
#include "target_place.hpp"

#include <atomic>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>

namespace target_rotation_test {

using namespace cohort;
using namespace cohort::test;
using output::old_text;
using output::written_file;
namespace fs = std::filesystem;

namespace {

/// A directory, and what of it is rotated.
struct place : target_place {
    /// A file "log" that is rotated.
    written_file rotated(std::uint64_t limit, int kept) {
        auto shared =
            std::make_shared<base::unique_fd>(output::open_base(-1, scratch.path(), error));
        return written_file(open("log", old_text::is_kept),
                            output::rotated_path{output::rotation(limit, kept), "log", shared});
    }
    std::size_t files() const {
        return static_cast<std::size_t>(
            std::distance(fs::directory_iterator(scratch.path()), fs::directory_iterator()));
    }
};

}  // namespace

TEST_CASE("target rotation: a file is rotated between lines, and a few older ones are kept") {
    place p;
    auto log = p.rotated(10, 2);
    CHECK_FALSE(log.write("one\ntwo\nthree\n"));
    CHECK(p.text("log.1") == "one\ntwo\n");
    CHECK(p.text("log") == "three\n");
    CHECK_FALSE(log.write("four\nfive\nlonger than ten\nsix\n"));
    CHECK(p.text("log") == "six\n");
    CHECK(p.text("log.1") == "longer than ten\n");
    CHECK(p.text("log.2") == "four\nfive\n");
    CHECK(p.files() == 3);
    CHECK(log.written() == 44);
}

TEST_CASE("target rotation: text that was there counts for the rotation") {
    place p;
    p.scratch.write("log", "12345678\n");
    auto log = p.rotated(10, 1);
    CHECK_FALSE(log.write("9\n"));
    CHECK(p.text("log.1") == "12345678\n");
    CHECK(p.text("log") == "9\n");
}

TEST_CASE("target rotation: a line that comes in parts is in one file") {
    place p;
    auto log = p.rotated(10, 3);
    CHECK_FALSE(log.write("line\nlong"));
    CHECK_FALSE(log.write("er and "));
    CHECK_FALSE(log.write("longer\nnext\n"));
    CHECK(p.text("log.1") == "line\nlonger and longer\n");
    CHECK(p.text("log") == "next\n");
}

TEST_CASE("target rotation: what never has a newline is rotated all the same") {
    place p;
    auto log = p.rotated(10, 1);
    const std::string part(40'000, 'x');
    for (int i = 0; i < 5; ++i)
        CHECK_FALSE(log.write(part));
    CHECK(p.files() == 2);
    CHECK(p.text("log").size() <= 65'536);
    CHECK(p.text("log.1").size() <= 65'536);
}

TEST_CASE("target rotation: without older files the file begins anew") {
    place p;
    auto log = p.rotated(5, 0);
    CHECK_FALSE(log.write("one\ntwo\n"));
    CHECK(p.text("log") == "two\n");
    CHECK(p.files() == 1);
}

TEST_CASE("target rotation: a rotation takes no time or memory for files that are not there") {
    place p;
    auto log = p.rotated(5, std::numeric_limits<int>::max());
    CHECK_FALSE(log.write("one\ntwo\nthree\n"));
    CHECK(p.text("log.2") == "one\n");
    CHECK(p.text("log.1") == "two\n");
    CHECK(p.text("log") == "three\n");
    CHECK(p.files() == 3);
}

TEST_CASE("target rotation: a rotation fills the first gap, and what is behind it stays") {
    place p;
    for (const char* name : {"log.1", "log.3", "log.4"})
        p.scratch.write(name, name);
    auto log = p.rotated(5, 4);
    CHECK_FALSE(log.write("one\ntwo\n"));
    CHECK(p.text("log.1") == "one\n");
    CHECK(p.text("log.2") == "log.1");
    CHECK(p.text("log.3") == "log.3");
    CHECK_FALSE(log.write("three\n"));
    CHECK(p.text("log.2") == "one\n");
    CHECK(p.text("log.3") == "log.1");
    CHECK(p.text("log.4") == "log.3");
    CHECK(p.files() == 5);
}

TEST_CASE("target rotation: the file after a rotation is new, and no link is followed to it") {
    place p;
    const auto victim = p.scratch.write("victim", "precious");
    fs::create_symlink(victim, p.scratch.file("log"));
    CHECK_FALSE(output::open_next(p.base.get(), "log", p.error));
    CHECK(p.error == std::errc::file_exists);
    fs::remove(p.scratch.file("log"));
    fs::create_hard_link(victim, p.scratch.file("log"));
    CHECK_FALSE(output::open_next(p.base.get(), "log", p.error));
    CHECK(p.error == std::errc::file_exists);
    CHECK(p.text("victim") == "precious");
    fs::remove(p.scratch.file("log"));
    put(output::open_next(p.base.get(), "log", p.error), "text");
    CHECK_FALSE(p.error);
    CHECK(p.text("log") == "text");
}

TEST_CASE("target rotation: links in the place of a file that was renamed overwrite nothing") {
    place p;
    const auto victim = p.scratch.write("victim", "precious");
    auto log = p.rotated(5, 3);
    std::atomic<bool> goes_on = true;
    std::thread links([&, name = p.scratch.file("log")] {
        while (goes_on)
            (void)!::symlink(victim.c_str(), name.c_str());
    });
    std::error_code error;
    for (int i = 0; i < 3'000 && !error; ++i)
        error = log.write("text\n");
    goes_on = false;
    links.join();
    CHECK((!error || error == std::errc::file_exists));
    CHECK(p.text("victim") == "precious");
}

TEST_CASE("target rotation: a file that cannot be renamed away is an error and no endless try") {
    place p;
    auto log = p.rotated(5, 1);
    CHECK_FALSE(log.write("one\n"));
    // rename(2) does nothing where both names are of one file.
    fs::create_hard_link(p.scratch.file("log"), p.scratch.file("log.1"));
    CHECK(log.write("two\n") == std::errc::file_exists);
    CHECK(p.text("log") == "one\n");
}

TEST_CASE("target rotation: a file that cannot be renamed takes all text, and is renamed later") {
    place p;
    fs::create_directories(p.scratch.file("log.1/full"));
    auto log = p.rotated(5, 1);
    CHECK_FALSE(log.not_rotated());
    CHECK_FALSE(log.write("one\ntwo\n"));
    CHECK(log.not_rotated() == std::errc::is_a_directory);
    CHECK(p.text("log") == "one\ntwo\n");
    CHECK_FALSE(log.write("a line longer than the limit\nthree\n"));
    CHECK(log.written() == 43);
    CHECK(p.text("log").size() == 43);
    fs::remove_all(p.scratch.file("log.1"));
    CHECK_FALSE(log.write("four\n"));
    CHECK(p.text("log.1").size() == 43);
    CHECK(p.text("log") == "four\n");
    CHECK(log.not_rotated() == std::errc::is_a_directory);
}

TEST_CASE("target rotation: without the right to rename all text is in one file") {
    place p;
    REQUIRE(::chmod(p.scratch.path().c_str(), 0755) == 0);
    auto log = p.rotated(5, 2);
    const auto written = [&] {
        const auto error = log.write("one\ntwo\nthree\n");
        return !error && log.not_rotated() == std::errc::permission_denied;
    };
    CHECK(in_fork([&] {
              constexpr uid_t other = 64'123;
              if (::geteuid() == 0 && ::setresuid(other, other, other) != 0)
                  return 2;
              if (::geteuid() != other && ::chmod(p.scratch.path().c_str(), 0555) != 0)
                  return 2;
              return written() ? 0 : 1;
          }) == 0);
    REQUIRE(::chmod(p.scratch.path().c_str(), 0755) == 0);
    CHECK(p.text("log") == "one\ntwo\nthree\n");
    CHECK(p.files() == 1);
}

TEST_CASE("target rotation: a directory that somebody has removed is not made again") {
    place p;
    auto base = std::make_shared<base::unique_fd>(output::open_base(-1, p.scratch.path(), p.error));
    written_file log(p.open("gone/log"),
                     output::rotated_path{output::rotation(5, 1), "gone/log", base});
    CHECK_FALSE(log.write("one\n"));
    fs::remove_all(p.scratch.file("gone"));
    CHECK(log.write("two\n") == std::errc::no_such_file_or_directory);
    CHECK_FALSE(fs::exists(p.scratch.file("gone")));
}

TEST_CASE("target rotation: only a regular file is rotated") {
    place p;
    REQUIRE(::mkfifo(p.scratch.file("log").c_str(), 0600) == 0);
    const base::unique_fd reader(::open(p.scratch.file("log").c_str(), O_RDONLY | O_NONBLOCK));
    auto log = p.rotated(5, 1);
    CHECK_FALSE(log.write("one\ntwo\n"));
    CHECK(p.files() == 1);
}

}  // namespace target_rotation_test
