// SPDX-License-Identifier: BSL-1.0
// Workers of pools that do what no worker does: each loses its call and its life, and nothing else.
#include "pool_support.hpp"

#include <cohort/cohort.hpp>

#include <csignal>
#include <cstdint>
#include <string>

#include <sys/socket.h>
#include <unistd.h>

namespace pool_hostile_test {

using namespace cohort::test;
using namespace std::chrono_literals;
using cohort::task;

namespace {

/// Closes the connection to the pool, and lives on.
int close_sockets() {
    for (int fd = 3; fd < 1000; ++fd) {
        int type = 0;
        socklen_t length = sizeof type;
        if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_SEQPACKET)
            ::close(fd);
    }
    for (;;)
        ::pause();
}
/// Sends the pool a well-formed packet that says what is not so.
int forge(int kind, std::uint64_t call, int size, bool is_batch) {
    struct {
        std::uint32_t mark = 0x31514F43;
        std::uint16_t what = 1;  // the payload follows; 3: a batch of payloads
        std::uint16_t descriptors = 0;
        std::uint64_t size = 0;
        std::uint64_t type = 0;
    } header;
    header.what = is_batch ? 3 : 1;
    header.size = static_cast<std::uint64_t>(size);
    header.type = static_cast<std::uint64_t>(kind) << 56 | call;
    std::string packet(reinterpret_cast<const char*>(&header), sizeof header);
    packet.append(static_cast<std::size_t>(size), 'x');
    for (int fd = 3; fd < 1000; ++fd)
        (void)!::send(fd, packet.data(), packet.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    for (;;)
        ::pause();
}
int stop_itself() {
    ::raise(SIGSTOP);
    return 1;
}
int become_another_program() {
    ::execlp("sleep", "sleep", "1000", nullptr);
    return 1;
}

/// Sends the pool what no worker sends.
int send_garbage() {
    for (int fd = 3; fd < 1000; ++fd)
        (void)!::send(fd, "garbage", 7, MSG_NOSIGNAL);
    for (;;)
        ::pause();
}

}  // namespace

POOL_TEST("pool hostile: a worker that breaks the protocol is killed") {
    auto pool = co_await cohort::start_pool(1);
    const auto garbage =
        co_await failure_of<cohort::process_exited_exception>(pool.submit(task<send_garbage>()));
    CHECK(garbage.signal_name() == "SIGKILL");
    CHECK(garbage.failed().note().find("broke the pool's protocol") != std::string::npos);
    const auto closed =
        co_await failure_of<cohort::process_exited_exception>(pool.submit(task<close_sockets>()));
    CHECK(closed.failed().note().find("broke the pool's protocol") != std::string::npos);
    CHECK(co_await pool.submit(task<add>(1, 2)) == 3);
}

POOL_TEST("pool hostile: a worker that sends what is not so is killed") {
    auto pool = co_await cohort::start_pool(1);
    struct lie {
        int kind;
        std::uint64_t call;
        int size;
        bool is_batch = false;
    };
    // READY again; a value and an error of other calls; unknown kinds; what only pools send; an
    // empty batch.
    for (const auto [kind, call, size, is_batch] :
         {lie{3, 0, 0}, lie{4, 1, 10}, lie{5, 1, 10}, lie{9, 0, 0}, lie{0, 0, 5}, lie{2, 1, 100},
          lie{4, 1, 200'000}, lie{4, 1, 0, true}}) {
        const auto error = co_await failure_of<cohort::process_exited_exception>(
            pool.submit(task<forge>(kind, call, size, is_batch)));
        CHECK(error.signal_name() == "SIGKILL");
        CHECK(error.failed().note().find("broke the pool's protocol") != std::string::npos);
        CHECK(co_await pool.submit(task<add>(1, 2)) == 3);
    }
}

POOL_TEST("pool hostile: a worker that is stopped or becomes another program") {
    auto pool = co_await cohort::start_pool(1);
    (void)co_await failure_of<cohort::task_timeout>(pool.submit(task<stop_itself>(), 50ms));
    const auto error = co_await failure_of<cohort::process_exited_exception>(
        pool.submit(task<become_another_program>()));
    CHECK(error.failed().note().find("broke the pool's protocol") != std::string::npos);
    CHECK(co_await pool.submit(task<add>(1, 2)) == 3);
}

}  // namespace pool_hostile_test
