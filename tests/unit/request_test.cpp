// SPDX-License-Identifier: BSL-1.0
// What the application and its fork server say to each other.
#include "forkserver/request.hpp"

#include "sys/socket.hpp"
#include "sys_support.hpp"

#include <cstring>
#include <stdexcept>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace cohort;
using forkserver::packed_order;
using forkserver::unpacked_order;

namespace {

ino_t inode_of(int fd) {
    struct stat file {};
    REQUIRE(::fstat(fd, &file) == 0);
    return file.st_ino;
}

packed_order packed_example(std::string& variable, cpu_set_t& cpus) {
    exec::exec_order order;
    order.envp = {variable.data(), nullptr};
    order.directory_fd = 11;
    order.working_directory = "/tmp";
    order.descriptors = {{0, -1, "/dev/null", O_RDONLY}, {7, 12}, {60, 13}, {61, 14}, {1, -1}};
    order.affinity = &cpus;
    order.affinity_size = sizeof cpus;
    order.parent_death_signal = 9;
    order.parent = 4711;
    order.own_process_group = false;
    order.cgroup = 15;
    order.cgroup_is_needed = true;
    return forkserver::pack(order, {60, 61}, 123);
}

}  // namespace

TEST_CASE("request: an order arrives as it was, with the descriptors that came with it") {
    std::string variable = "A=b";
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(3, &cpus);
    const auto packed = packed_example(variable, cpus);
    CHECK(packed.descriptors == std::vector<int>{15, 11, 12, 13, 14});
    CHECK(packed.cgroup == 0);

    const int arrived[] = {25, 21, 22, 23, 24};
    unpacked_order got;
    forkserver::unpack(packed.text, arrived, got);
    const auto& order = got.order;
    CHECK(got.channel.record == 60);
    CHECK(got.channel.started_event == 61);
    CHECK(got.record_inode == 123);
    CHECK(order.cgroup == 25);
    CHECK(order.cgroup_is_needed);
    CHECK(order.directory_fd == 21);
    CHECK(std::string(order.working_directory) == "/tmp");
    REQUIRE(order.descriptors.size() == 4);
    CHECK(std::string(order.descriptors[0].path) == "/dev/null");
    CHECK(order.descriptors[1].target == 7);
    CHECK(order.descriptors[1].fd == 22);
    CHECK(order.descriptors[3].fd == 24);
    CHECK(got.closed == std::vector<int>{1});
    REQUIRE(order.envp.size() == 2);
    CHECK(std::string(order.envp[0]) == "A=b");
    CHECK(order.envp[1] == nullptr);
    CHECK(order.affinity_size == sizeof cpus);
    CHECK(std::memcmp(order.affinity, &cpus, sizeof cpus) == 0);
    CHECK(order.parent_death_signal == 9);
    CHECK(order.parent == 4711);
    CHECK_FALSE(order.own_process_group);
    CHECK(got.process_group == ::getpgrp());
}

TEST_CASE("request: one that is cut short, or lacks descriptors, is refused") {
    std::string variable = "A=b";
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    const auto packed = packed_example(variable, cpus);
    const int arrived[] = {21, 22, 23, 24, 25};
    for (std::size_t length = 0; length < packed.text.size(); ++length) {
        unpacked_order got;
        CHECK_THROWS_AS(forkserver::unpack(std::span(packed.text).first(length), arrived, got),
                        std::runtime_error);
    }
    unpacked_order got;
    CHECK_THROWS_AS(forkserver::unpack(packed.text, std::span(arrived).first(4), got),
                    std::runtime_error);
}

TEST_CASE("socket: messages stay whole, and descriptors come with them, close-on-exec") {
    sys::unique_fd one, other;
    REQUIRE_FALSE(sys::make_socket_pair(one, other));
    const int sent[] = {STDERR_FILENO, one.get()};
    REQUIRE_FALSE(sys::send_message(one.get(), std::as_bytes(std::span("first")), sent));
    REQUIRE_FALSE(sys::send_message(one.get(), std::as_bytes(std::span("second")), {}));

    std::byte buffer[64];
    std::size_t length = 0;
    std::vector<sys::unique_fd> got;
    REQUIRE_FALSE(sys::receive_message(other.get(), buffer, length, got, sys::waiting::block));
    CHECK(length == sizeof "first");
    REQUIRE(got.size() == 2);
    CHECK(inode_of(got[1].get()) == inode_of(one.get()));
    CHECK((::fcntl(got[0].get(), F_GETFD) & FD_CLOEXEC) != 0);
    REQUIRE_FALSE(sys::receive_message(other.get(), buffer, length, got, sys::waiting::block));
    CHECK(length == sizeof "second");
    CHECK(got.empty());
    CHECK(sys::receive_message(other.get(), buffer, length, got, sys::waiting::nonblock) ==
          std::errc::resource_unavailable_try_again);
}

TEST_CASE("socket: the end of the connection is a message of no length, and sending is EPIPE") {
    sys::unique_fd one, other;
    REQUIRE_FALSE(sys::make_socket_pair(one, other));
    one.reset();
    std::byte buffer[8];
    std::size_t length = 1;
    std::vector<sys::unique_fd> got;
    REQUIRE_FALSE(sys::receive_message(other.get(), buffer, length, got, sys::waiting::block));
    CHECK(length == 0);
    CHECK(sys::send_message(other.get(), std::as_bytes(std::span("x")), {}) ==
          std::errc::broken_pipe);
}

TEST_CASE("socket: more descriptors than a message can carry are refused before it is sent") {
    sys::unique_fd one, other;
    REQUIRE_FALSE(sys::make_socket_pair(one, other));
    const std::vector<int> many(sys::most_descriptors + 1, STDERR_FILENO);
    CHECK(sys::send_message(one.get(), std::as_bytes(std::span("x")), many) ==
          std::errc::too_many_files_open);
}
