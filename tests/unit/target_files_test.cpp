// SPDX-License-Identifier: BSL-1.0
// How the files that workers' text goes into are opened and written.
#include "output/targets/files.hpp"
#include "reporter.hpp"
#include "sys_support.hpp"
#include "target_place.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>

namespace target_files_test {

using namespace cohort;
using namespace cohort::test;
using output::old_text;
using output::written_file;
using place = cohort::test::target_place;
namespace fs = std::filesystem;

TEST_CASE("target files: missing directories are made, relative to the base") {
    place p;
    put(p.open("a/b//c/log"), "text");
    CHECK_FALSE(p.error);
    CHECK(p.text("a/b/c/log") == "text");
    CHECK(p.open(p.scratch.file("x/y")));
    CHECK(fs::is_regular_file(p.scratch.file("x/y")));
}

TEST_CASE("target files: directories are made without the file") {
    place p;
    CHECK_FALSE(output::make_directories(p.base.get(), "a/b/log"));
    CHECK(fs::is_directory(p.scratch.file("a/b")));
    CHECK_FALSE(fs::exists(p.scratch.file("a/b/log")));
    CHECK_FALSE(output::make_directories(p.base.get(), "a/b/log"));
    CHECK_FALSE(output::make_directories(p.base.get(), "plain"));
    CHECK_FALSE(output::make_directories(p.base.get(), "c//"));
    CHECK_FALSE(fs::exists(p.scratch.file("c")));
    p.scratch.write("file", "");
    CHECK(output::make_directories(p.base.get(), "file/b/log") == std::errc::not_a_directory);
}

TEST_CASE("target files: old text is dropped or kept") {
    place p;
    put(p.open("log"), "old");
    put(p.open("log", old_text::is_kept), " and new");
    CHECK(p.text("log") == "old and new");
    put(p.open("log"), "fresh");
    CHECK(p.text("log") == "fresh");
}

TEST_CASE("target files: a file blocks, appends and is close-on-exec") {
    place p;
    const auto file = p.open("log");
    const int flags = ::fcntl(file.get(), F_GETFL);
    CHECK((flags & O_ACCMODE) == O_WRONLY);
    CHECK((flags & O_APPEND) != 0);
    CHECK((flags & O_NONBLOCK) == 0);
    CHECK_FALSE(base::survives_exec(file.get()));
    CHECK_FALSE(base::survives_exec(p.base.get()));
}

TEST_CASE("target files: a FIFO without a reader is an error and no wait") {
    place p;
    REQUIRE(::mkfifo(p.scratch.file("fifo").c_str(), 0600) == 0);
    CHECK_FALSE(p.open("fifo"));
    CHECK(p.error == std::errc::no_such_device_or_address);
    const base::unique_fd reader(::open(p.scratch.file("fifo").c_str(), O_RDONLY | O_NONBLOCK));
    const auto file = p.open("fifo");
    REQUIRE(file);
    CHECK((::fcntl(file.get(), F_GETFL) & O_NONBLOCK) == 0);
}

TEST_CASE("target files: what can't be opened is an error") {
    place p;
    p.scratch.write("file", "");
    fs::create_directory(p.scratch.file("directory"));
    fs::create_symlink("nowhere/log", p.scratch.file("dangling"));
    const auto error_of = [&](const std::string& path) {
        CHECK_FALSE(p.open(path));
        return p.error;
    };
    CHECK(error_of("directory") == std::errc::is_a_directory);
    CHECK(error_of("file/log") == std::errc::not_a_directory);
    CHECK(error_of("dangling") == std::errc::no_such_file_or_directory);
    CHECK(error_of("") == std::errc::no_such_file_or_directory);
    CHECK(error_of(std::string("a\0b", 3)) == std::errc::invalid_argument);
    CHECK(error_of(std::string("a\0/b", 4)) == std::errc::invalid_argument);
    CHECK(error_of(std::string(300, 'x')) == std::errc::filename_too_long);
    CHECK_FALSE(fs::exists(p.scratch.file("a")));
}

TEST_CASE("target files: without permission nothing is opened") {
    if (::geteuid() == 0) {
        skip("root may write everywhere");
        return;
    }
    place p;
    fs::create_directory(p.scratch.file("locked"));
    ::chmod(p.scratch.file("locked").c_str(), 0500);
    CHECK_FALSE(p.open("locked/log"));
    CHECK(p.error == std::errc::permission_denied);
    CHECK_FALSE(p.open("locked/more/log"));
    CHECK(p.error == std::errc::permission_denied);
}

TEST_CASE("target files: the base is the worker's directory") {
    place p;
    fs::create_directories(p.scratch.file("here/there"));
    const auto here = output::open_base(p.base.get(), "here", p.error);
    REQUIRE(here);
    put(output::open_output(here.get(), "log", old_text::is_dropped, p.error), "1");
    CHECK(p.text("here/log") == "1");
    const auto same = output::open_base(here.get(), "", p.error);
    CHECK(output::is_same_file(here.get(), same.get()));
    const auto absolute = output::open_base(here.get(), p.scratch.path(), p.error);
    CHECK(output::is_same_file(absolute.get(), p.base.get()));
    const auto now = output::open_base(-1, "", p.error);
    CHECK(fs::equivalent("/proc/self/fd/" + std::to_string(now.get()), "."));
    CHECK_FALSE(output::open_base(here.get(), "missing", p.error));
    CHECK(p.error == std::errc::no_such_file_or_directory);
}

TEST_CASE("target files: the numbers of closed standard streams are left alone") {
    place p;
    CHECK(in_fork([&] {
              ::close(0);
              ::close(1);
              const auto file = p.open("log");
              const auto base = output::open_base(-1, "", p.error);
              return file.get() > 2 && base.get() > 2 ? 0 : 1;
          }) == 0);
}

TEST_CASE("target files: a pipe is the same file by each of its descriptors") {
    const auto pipe = make_pipe();
    const base::unique_fd copy(::dup(pipe.writer.get()));
    const auto other = make_pipe();
    CHECK(output::is_same_file(pipe.writer.get(), copy.get()));
    CHECK_FALSE(output::is_same_file(pipe.writer.get(), other.writer.get()));
    CHECK_FALSE(output::is_same_file(-1, -1));
}

TEST_CASE("target files: a borrowed descriptor stays open") {
    const auto pipe = make_pipe();
    {
        written_file file(pipe.writer.get());
        CHECK_FALSE(file.is_owned());
        CHECK_FALSE(file.write("text"));
        file.close();
    }
    CHECK(::fcntl(pipe.writer.get(), F_GETFD) >= 0);
}

TEST_CASE("target files: a descriptor that is not open is an error") {
    written_file file(-1);
    CHECK(file.write("text") == std::errc::bad_file_descriptor);
    CHECK(file.unwritten() == 4);
}

}  // namespace target_files_test
