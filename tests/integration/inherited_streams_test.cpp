// SPDX-License-Identifier: BSL-1.0
// Workers that inherit a stdin or stdout which is non-blocking here.
#include "stream_support.hpp"

#include <cstdio>
#include <cstdlib>

#include <fcntl.h>
#include <sys/socket.h>

namespace inherited_streams_test {

using namespace cohort::test;

namespace {

bool waits(int fd) { return (::fcntl(fd, F_GETFL) & O_NONBLOCK) == 0; }

/// Reads a line from its input. @return "waits: " or "does not wait: ", and the line
std::string read_line(int) {
    std::string line;
    char next = 0;
    while (::read(STDIN_FILENO, &next, 1) == 1 && (line += next, next != '\n'))
        continue;
    return (waits(STDIN_FILENO) ? "waits: " : "does not wait: ") + line;
}

/// Prints a byte. @return whether its output waits
bool print(int) {
    put(STDOUT_FILENO, "x");
    return waits(STDOUT_FILENO);
}

void make_non_blocking(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

/// A descriptor that is non-blocking, in the place of a standard stream of this program.
class stand_in {
public:
    stand_in(int fd, int number) : number_(number), saved_(::fcntl(number, F_DUPFD_CLOEXEC, 3)) {
        std::fflush(nullptr);  // or a copy prints it there, where a sanitizer's _exit flushes
        make_non_blocking(fd);
        ::dup2(fd, number);
    }
    stand_in(const stand_in&) = delete;
    stand_in& operator=(const stand_in&) = delete;
    ~stand_in() {
        ::dup2(saved_, number_);
        ::close(saved_);
    }

private:
    int number_;
    int saved_;
};

/// What a worker reads that inherits this program's stdin.
std::string line_in(cohort::start_method method) {
    return ended(cohort::function<read_line>(), by(method).stdin_from(cohort::inherit()))
        .outcomes.at(0)
        .result<std::string>();
}

}  // namespace

TEST_CASE("inherited streams: a pipe that is non-blocking here waits in a worker") {
    have_server();
    const leak_guard guard;
    const pipe_pair ours;
    const stand_in own(ours.reads(), STDIN_FILENO);
    for (const auto method : all_methods) {
        put(ours.writes(), "a line\n");
        CHECK(line_in(method) == "waits: a line\n");
        CHECK_FALSE(waits(STDIN_FILENO));
    }
}

TEST_CASE("inherited streams: a terminal that is non-blocking here waits in a worker") {
    have_server();
    const leak_guard guard;
    const open_file ours("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    REQUIRE(::unlockpt(ours.get()) == 0);
    const open_file theirs(::ptsname(ours.get()), O_RDWR | O_NOCTTY | O_CLOEXEC);
    {
        const stand_in own(theirs.get(), STDIN_FILENO);
        put(ours.get(), "a line\n");
        CHECK(line_in(cohort::start_method::spawn) == "waits: a line\n");
        CHECK_FALSE(waits(STDIN_FILENO));
    }
    // Opened anew, the other side would be another terminal.
    const stand_in own(ours.get(), STDIN_FILENO);
    put(theirs.get(), "printed\n");
    CHECK(line_in(cohort::start_method::spawn).starts_with("does not wait: a line"));
}

TEST_CASE("inherited streams: an output that is non-blocking here waits in a worker") {
    have_server();
    const leak_guard guard;
    for (const auto method : all_methods) {
        pipe_pair ours;
        bool waited = false;
        bool stayed = false;
        {
            const stand_in own(ours.writes(), STDOUT_FILENO);
            waited = ended(cohort::function<print>(), by(method)).outcomes.at(0).result<bool>();
            stayed = !waits(STDOUT_FILENO);
        }
        ours.close_writes();
        CHECK(read_all(ours.reads()) == "x");
        CHECK(waited);
        CHECK(stayed);
    }
}

TEST_CASE("inherited streams: what can't be opened anew, or need not, is as it is here") {
    const leak_guard guard;
    const auto method = cohort::start_method::spawn;
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    put(ends[1], "a line\n");
    {
        const stand_in own(ends[0], STDIN_FILENO);
        CHECK(line_in(method) == "does not wait: a line\n");
    }
    ::close(ends[0]);
    ::close(ends[1]);

    // Nobody waits for a writer that is gone.
    pipe_pair ours;
    put(ours.writes(), "a line\n");
    ours.close_writes();
    {
        const stand_in own(ours.reads(), STDIN_FILENO);
        CHECK(line_in(method) == "does not wait: a line\n");
        CHECK(line_in(method) == "does not wait: ");
    }

    // The place in a file is shared.
    const scratch_directory directory;
    const open_file text(directory.write("text", "a line\nanother\n"));
    const stand_in own(text.get(), STDIN_FILENO);
    CHECK(line_in(method) == "does not wait: a line\n");
    CHECK(line_in(method) == "does not wait: another\n");
}

}  // namespace inherited_streams_test
