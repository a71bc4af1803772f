// SPDX-License-Identifier: BSL-1.0
// The connection between the application and its fork server.
#include "base/sys/socket.hpp"

#include "base/sys/descriptors.hpp"

#include "sys_support.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace socket_test {

using namespace cohort;

namespace {

ino_t inode_of(int fd) {
    struct stat file {};
    REQUIRE(::fstat(fd, &file) == 0);
    return file.st_ino;
}

}  // namespace

TEST_CASE("socket: messages stay whole, and descriptors come with them, close-on-exec") {
    base::unique_fd one, other;
    REQUIRE_FALSE(base::make_socket_pair(one, other));
    const int sent[] = {STDERR_FILENO, one.get()};
    REQUIRE_FALSE(base::send_message(one.get(), std::as_bytes(std::span("first")), sent));
    REQUIRE_FALSE(base::send_message(one.get(), std::as_bytes(std::span("second")), {}));

    std::byte buffer[64];
    std::size_t length = 0;
    std::vector<base::unique_fd> got;
    REQUIRE_FALSE(base::receive_message(other.get(), buffer, length, got, base::waiting::block));
    CHECK(length == sizeof "first");
    REQUIRE(got.size() == 2);
    CHECK(inode_of(got[1].get()) == inode_of(one.get()));
    CHECK((::fcntl(got[0].get(), F_GETFD) & FD_CLOEXEC) != 0);
    REQUIRE_FALSE(base::receive_message(other.get(), buffer, length, got, base::waiting::block));
    CHECK(length == sizeof "second");
    CHECK(got.empty());
    CHECK(base::receive_message(other.get(), buffer, length, got, base::waiting::nonblock) ==
          std::errc::resource_unavailable_try_again);
}

TEST_CASE("socket: the end of the connection is a message of no length, and sending is EPIPE") {
    base::unique_fd one, other;
    REQUIRE_FALSE(base::make_socket_pair(one, other));
    one.reset();
    std::byte buffer[8];
    std::size_t length = 1;
    std::vector<base::unique_fd> got;
    REQUIRE_FALSE(base::receive_message(other.get(), buffer, length, got, base::waiting::block));
    CHECK(length == 0);
    CHECK(base::send_message(other.get(), std::as_bytes(std::span("x")), {}) ==
          std::errc::broken_pipe);
}

TEST_CASE("socket: more descriptors than a message can carry are refused before it is sent") {
    base::unique_fd one, other;
    REQUIRE_FALSE(base::make_socket_pair(one, other));
    const std::vector<int> many(base::most_descriptors + 1, STDERR_FILENO);
    CHECK(base::send_message(one.get(), std::as_bytes(std::span("x")), many) ==
          std::errc::too_many_files_open);
}

TEST_CASE("socket: what another process has asked to be told with messages leaves nothing open") {
    base::unique_fd one, other;
    REQUIRE_FALSE(base::make_socket_pair(one, other));
    const int on = 1;
    constexpr int pass_pidfd = 76;  // SO_PASSPIDFD, Linux 6.5
    const bool has_pidfds = ::setsockopt(other.get(), SOL_SOCKET, pass_pidfd, &on, sizeof on) == 0;
    REQUIRE(::setsockopt(other.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0);
    REQUIRE(::setsockopt(other.get(), SOL_SOCKET, SO_PASSSEC, &on, sizeof on) == 0);
    std::byte buffer[8];
    std::size_t length = 0;
    std::vector<base::unique_fd> got;
    const auto before = base::open_descriptors();
    const auto crosses = [&] {
        const std::vector<int> most(base::most_descriptors, STDERR_FILENO);
        REQUIRE_FALSE(base::send_message(one.get(), std::as_bytes(std::span("x")), most));
        const auto error =
            base::receive_message(other.get(), buffer, length, got, base::waiting::nonblock);
        CHECK_FALSE(error);
        CHECK(got.size() == base::most_descriptors);
        got.clear();
    };
    crosses();
    CHECK(base::open_descriptors() == before);
    base::report_nothing(other.get());
    int left = 1;
    socklen_t size = sizeof left;
    REQUIRE(::getsockopt(other.get(), SOL_SOCKET, SO_PASSCRED, &left, &size) == 0);
    CHECK(left == 0);
    if (has_pidfds) {
        REQUIRE(::getsockopt(other.get(), SOL_SOCKET, pass_pidfd, &left, &size) == 0);
        CHECK(left == 0);
    }
    crosses();
    CHECK(base::open_descriptors() == before);
}

TEST_CASE("socket: a received descriptor never becomes a standard stream") {
    base::unique_fd one, other;
    REQUIRE_FALSE(base::make_socket_pair(one, other));
    const int sent[] = {one.get(), other.get()};
    REQUIRE_FALSE(base::send_message(one.get(), std::as_bytes(std::span("x")), sent));
    std::byte buffer[8];
    std::size_t length = 0;
    std::vector<base::unique_fd> got;
    const base::unique_fd output(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
    ::close(STDOUT_FILENO);
    const auto error =
        base::receive_message(other.get(), buffer, length, got, base::waiting::nonblock);
    const bool is_free = ::fcntl(STDOUT_FILENO, F_GETFD) < 0;
    ::dup2(output.get(), STDOUT_FILENO);
    CHECK_FALSE(error);
    CHECK(is_free);
    REQUIRE(got.size() == 2);
    CHECK(got[0].get() > STDERR_FILENO);
    CHECK(got[1].get() > STDERR_FILENO);
    CHECK(inode_of(got[0].get()) == inode_of(one.get()));
}

TEST_CASE("socket: a message with which something unknown comes is refused") {
    base::unique_fd one, other;
    REQUIRE_FALSE(base::make_socket_pair(one, other));
    const int on = 1;
    REQUIRE(::setsockopt(other.get(), SOL_SOCKET, SO_TIMESTAMP, &on, sizeof on) == 0);
    REQUIRE_FALSE(base::send_message(one.get(), std::as_bytes(std::span("x")), {}));
    std::byte buffer[8];
    std::size_t length = 0;
    std::vector<base::unique_fd> got;
    CHECK(base::receive_message(other.get(), buffer, length, got, base::waiting::nonblock) ==
          std::errc::bad_message);
    CHECK(length == sizeof "x");
}

}  // namespace socket_test
