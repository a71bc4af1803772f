// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "group_test.hpp"
#include "guard.hpp"
#include "reporter.hpp"
#include "scratch.hpp"

#include <cohort/cohort.hpp>

#include <asio/awaitable.hpp>
#include <doctest/doctest.h>

#include <array>
#include <cerrno>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

// Helpers for the tests of starts: whole groups in one call, files and pipes of a case.
namespace cohort::test {

template <class Work>
asio::awaitable<void> wait_into(cohort::report& into, Work work, cohort::options how) {
    auto group = co_await cohort::spawn(std::move(work), std::move(how));
    into = co_await group.wait();
}

template <class Work>
asio::awaitable<void> run_whole(Work work, cohort::options how) {
    (void)co_await cohort::run(std::move(work), std::move(how));
}

/// Starts a group and waits for its end. A worker's failure is not thrown.
template <class Work>
cohort::report ended(Work work, cohort::options how = 1) {
    cohort::report result;
    run_coroutine(wait_into(result, std::move(work), std::move(how)));
    return result;
}

inline void do_nothing(int) {}

/// Call this before the guard is made, because a fork server that it starts stays.
inline void have_server() {
    { const leak_guard first_of_all; }  // makes what any group leaves for ever
    const auto how = [] { return cohort::options(1).name("warm-up"); };
    CHECK(
        ended(cohort::function<do_nothing>(), how().start_method(cohort::start_method::forkserver))
            .success());
    CHECK(ended(cohort::command("true"), how()).success());  // closes the rest by its end
}

/// The exception of a start, or of a worker's failure.
template <class Error, class Work>
Error thrown_by(Work work, cohort::options how = 1) {
    try {
        run_coroutine(run_whole(std::move(work), std::move(how)));
    } catch (const Error& e) {
        return e;
    }
    throw std::logic_error("nothing was thrown");
}

inline std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);)
        lines.push_back(line);
    return lines;
}

/// The output of a command that runs as the only worker.
inline std::string printed_by(cohort::command work, cohort::options how = 1) {
    const scratch_directory directory;
    how.stdout_to(directory.file("printed"));
    const auto report = ended(std::move(work), std::move(how));
    CHECK_MESSAGE(report.success(), fmt::format("{}", report));
    return read_file(directory.file("printed"));
}

/// The outputs of a command that runs as several workers, by index.
inline std::vector<std::string> printed_by_each(const cohort::command& work, cohort::options how,
                                                int size) {
    const scratch_directory directory;
    const auto with_output = [&](int index) {
        return cohort::command(work).stdout_to(directory.file(std::to_string(index)));
    };
    const auto report = ended(cohort::command_for(with_output), how.nprocs(size));
    CHECK_MESSAGE(report.success(), fmt::format("{}", report));
    std::vector<std::string> texts;
    for (int index = 0; index < size; ++index)
        texts.push_back(read_file(directory.file(std::to_string(index))));
    return texts;
}

/// The value of the line `name` in a /proc/PID/status.
inline std::string field(const std::string& status, const std::string& name) {
    for (const auto& line : lines_of(status))
        if (line.rfind(name + ":\t", 0) == 0)
            return line.substr(name.size() + 2);
    return "no " + name;
}

/// An open file of the case.
class open_file {
public:
    explicit open_file(const std::string& path, int flags = O_RDONLY)
        : fd_(::open(path.c_str(), flags, 0644)) {
        if (fd_ < 0)
            throw std::system_error(errno, std::generic_category(), path);
    }
    open_file(open_file&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    open_file& operator=(open_file&&) = delete;
    ~open_file() { close(); }
    int get() const noexcept { return fd_; }
    void close() noexcept {
        if (fd_ >= 0)
            ::close(std::exchange(fd_, -1));
    }

private:
    int fd_;
};

}  // namespace cohort::test
