// SPDX-License-Identifier: BSL-1.0
// What a stream at a host has still to send.
#include "hosts/connection/send_queue.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

namespace hosts_streams_queue_test {

using cohort::detail::loss;
using cohort::multihost::send_queue;

namespace {

constexpr std::size_t any = 1 << 20;

/// The next piece as text: "0 lost 1/4 abc end".
std::string take(send_queue& queue, std::size_t most = any) {
    if (queue.empty())
        return "";
    const auto next = queue.next(most);
    auto told = std::to_string(next.attempt) + ' ';
    if (next.lost != loss{})
        told +=
            "lost " + std::to_string(next.lost.lines) + '/' + std::to_string(next.lost.bytes) + ' ';
    told += next.bytes;
    told += next.is_end ? " end" : "";
    queue.sent(next);
    return told;
}

}  // namespace

TEST_CASE("hosts streams queue: bytes that follow each other go together, in pieces as wanted") {
    send_queue queue;
    CHECK(queue.empty());
    queue.add(0, "abc");
    queue.add(0, "def");
    CHECK(queue.bytes() == 6);
    CHECK(take(queue, 4) == "0 abcd");
    CHECK(take(queue) == "0 ef");
    CHECK(queue.empty());
    CHECK(queue.is_clear());
}

TEST_CASE("hosts streams queue: an end goes with the last bytes, or alone after them") {
    send_queue queue;
    queue.add(0, "ab");
    queue.end(0);
    CHECK(queue.has_ended());
    queue.add(1, "c");
    CHECK(take(queue, 1) == "0 a");
    CHECK(take(queue) == "0 b end");
    CHECK_FALSE(queue.has_ended());
    CHECK(take(queue) == "1 c");
    queue.end(1);
    CHECK(take(queue) == "1  end");
}

TEST_CASE("hosts streams queue: what is dropped is told before what follows") {
    send_queue queue;
    queue.add(0, std::string(65'536, 'x') + "\n");
    queue.add(0, "kept\n");
    CHECK(queue.drop_oldest() == 65'537);
    CHECK(queue.bytes() == 5);
    CHECK(take(queue) == "0 lost 1/65537 kept\n");
}

TEST_CASE("hosts streams queue: a line of which a part was dropped is dropped to its end") {
    send_queue queue;
    queue.add(0, std::string(65'536, 'x'));
    queue.add(0, "rest\nkept\n");
    CHECK(queue.drop_oldest() == 65'541);
    CHECK(take(queue) == "0 lost 1/65541 kept\n");
    queue.add(0, std::string(65'536, 'x'));
    queue.add(0, "rest\n");
    queue.add(0, std::string(65'535, 'y'));
    CHECK(queue.drop_oldest() == 65'541);
    CHECK(take(queue).starts_with("0 lost 1/65541 yyy"));
}

TEST_CASE("hosts streams queue: a loss waits for what follows it") {
    send_queue queue;
    queue.add(0, "a\nb\n");
    CHECK(queue.drop_oldest() == 4);
    CHECK(queue.drop_oldest() == 0);
    CHECK(queue.empty());
    CHECK_FALSE(queue.is_clear());
    queue.lose(0, "c\n");
    queue.end(0);
    CHECK(take(queue) == "0 lost 3/6  end");
    CHECK(queue.is_clear());
}

TEST_CASE("hosts streams queue: ends stay where the bytes before them are dropped") {
    send_queue queue;
    queue.add(0, "a");
    queue.end(0);
    queue.add(1, "b");
    queue.end(1);
    queue.drop_to(0);
    CHECK(queue.bytes() == 0);
    CHECK(take(queue) == "0 lost 0/1  end");
    CHECK(take(queue) == "1 lost 0/1  end");
}

TEST_CASE("hosts streams queue: the newest bytes stay, as many as may") {
    send_queue queue;
    queue.add(0, std::string(65'535, 'x') + "\n");
    queue.add(0, std::string(65'530, 'y') + "\n");
    queue.add(0, "new\n");
    queue.end(0);
    queue.drop_to(65'536);
    CHECK(queue.bytes() == 65'535);
    CHECK(take(queue).ends_with("yy\nnew\n end"));
}

TEST_CASE("hosts streams queue: what is lost at its end stands behind what is kept") {
    send_queue queue;
    queue.add(0, "ab");
    queue.lose(0, "c");
    CHECK(take(queue) == "0 ab");
    CHECK(queue.empty());
    queue.add(0, "d");
    CHECK(take(queue) == "0 lost 0/1 d");
}

}  // namespace hosts_streams_queue_test
