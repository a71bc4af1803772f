// SPDX-License-Identifier: BSL-1.0
// stdin_from(): files, this program's own input, and a text for all workers. feed_test.cpp has the
// rest.
#include "sanitizers.hpp"
#include "stream_support.hpp"

#include <algorithm>

#include <fcntl.h>

namespace stream_input_test {

using namespace cohort::test;

namespace {

const std::size_t large = static_cast<std::size_t>(how_many(10'000'000, 1'000'000));

std::string read_input(int) { return read_all(0); }

/// Reads its input twice, from its own place on. @return "", or what is wrong
std::string read_and_seek(int index, std::size_t size) {
    if (::lseek(0, 0, SEEK_CUR) != 0)
        return "does not begin at the begin";
    if (::lseek(0, 0, SEEK_END) != static_cast<off_t>(size))
        return "has another size";
    ::lseek(0, index * 1000, SEEK_SET);
    const auto from = std::min(size, static_cast<std::size_t>(index) * 1000);
    if (read_all(0) != bytes_of_stream(7, from, size - from))
        return "has other bytes";
    ::lseek(0, 0, SEEK_SET);
    if (read_all(0).size() != size)
        return "does not begin again";
    const int mode = ::fcntl(0, F_GETFL) & O_ACCMODE;
    return mode == O_RDONLY && ::write(0, "x", 1) < 0 ? "" : "can be written";
}

std::string link_of_input(int) {
    char path[4096] = {};
    (void)!::readlink("/proc/self/fd/0", path, sizeof path - 1);
    return path;
}

}  // namespace

TEST_CASE("stream input: each worker reads all of the same text, at its own pace, and can seek") {
    have_server();
    const leak_guard guard;
    for (const auto size : {std::size_t{0}, std::size_t{1}, large}) {
        const auto text = bytes_of_stream(7, 0, size);
        for (const auto method : all_methods) {
            const auto how = by(method, size == large ? 8 : 2).stdin_from(cohort::bytes(text));
            for (const auto& worker : ended(cohort::function<read_and_seek>(size), how).outcomes)
                CHECK(worker.result<std::string>() == "");
        }
    }
    const auto how = cohort::options(1).stdin_from(cohort::bytes("a text\n"));
    for (const auto& printed : printed_by_each(cohort::command("cat"), how, 3))
        CHECK(printed == "a text\n");
    CHECK(printed_by(cohort::command("cat").stdin_from(cohort::bytes("")), how) == "");
}

TEST_CASE("stream input: a file, with a path from the worker's directory, by all start methods") {
    have_server();
    const leak_guard guard;
    const scratch_directory directory;
    directory.write("input", "in the file");
    for (const auto method : all_methods) {
        const auto how = by(method).working_directory(directory.path()).stdin_from("input");
        CHECK(ended(cohort::function<read_input>(), how).outcomes.at(0).result<std::string>() ==
              "in the file");
    }
    const auto missing = cohort::options(1).stdin_from(directory.file("missing"));
    CHECK_THROWS_AS(ended(cohort::command("cat"), missing), cohort::spawn_error);
}

TEST_CASE("stream input: inherit() gives this program's own input, by all start methods") {
    have_server();
    const leak_guard guard;
    const scratch_directory directory;
    const auto path = directory.write("own", "x");
    const open_file own(path);
    const int saved = ::dup(0);
    ::dup2(own.get(), 0);
    for (const auto method : all_methods) {
        const auto how = by(method).stdin_from(cohort::inherit());
        CHECK(ended(cohort::function<link_of_input>(), how).outcomes.at(0).result<std::string>() ==
              path);
        CHECK(ended(cohort::function<link_of_input>(), by(method))
                  .outcomes.at(0)
                  .result<std::string>() == "/dev/null");
    }
    CHECK(
        printed_by(cohort::command("readlink", "/proc/self/fd/0").stdin_from(cohort::inherit())) ==
        path + "\n");
    ::dup2(saved, 0);
    ::close(saved);
}

}  // namespace stream_input_test
