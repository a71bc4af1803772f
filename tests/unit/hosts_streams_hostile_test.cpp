// SPDX-License-Identifier: BSL-1.0
// What one end of a group's streams says to the other against the protocol.
#include "hosts_streams_support.hpp"

#include "hosts/values/messages.hpp"

#include <cohort/restarts.hpp>

#include <span>

namespace hosts_streams_hostile_test {

using namespace hosts_streams_test;

namespace {

std::vector<std::byte> data(const stream_head& head, std::size_t size = 1) {
    return write_data(head, std::vector<std::byte>(size, std::byte{'x'}));
}

options two(bool restart = false) {
    auto how = options(2).stdout_to(lines().when_full(when_full::block)).stdin_from(feed());
    return restart ? how.restart(restarts(5)) : how;
}

/// What the origin says to messages of the kind data, of which the last may be wrong.
std::optional<breach> said_to(const std::vector<std::vector<std::byte>>& bodies,
                              bool restart = false) {
    far_pair both(two(restart), command("true"), true);
    std::optional<breach> broken;
    both.at_output([&] {
        for (const auto& body : bodies) {
            CHECK_FALSE(broken);
            broken = both.origin->heard({{frame_kind::data, 1}, body});
        }
    });
    return broken;
}

std::optional<breach> agent_says(frame_kind kind, const std::vector<std::byte>& body) {
    far_pair both(two(), command("true"), true);
    std::optional<breach> broken;
    both.at_output([&] { broken = both.agent->heard({{kind, 1}, body}); });
    return broken;
}

}  // namespace

TEST_CASE("hosts streams hostile: data of unknown workers, streams and starts is a breach") {
    if (would_leave_threads())
        return;
    CHECK_FALSE(said_to({data({0, 0}), data({1, 0})}));
    CHECK(said_to({data({2, 0})}) == breach::body);
    CHECK(said_to({{}}) == breach::body);
    CHECK(said_to({data({0, 0, stream::err})}) == breach::order);  // it is not asked for
    CHECK(said_to({data({0, 1})}) == breach::order);
}

TEST_CASE("hosts streams hostile: after the end of a stream only a later start may follow") {
    if (would_leave_threads())
        return;
    const auto end = data({0, 0, stream::out, true}, 0);
    CHECK(said_to({end, data({0, 0})}) == breach::order);
    CHECK(said_to({end, data({0, 1})}) == breach::order);  // workers do not start again
    CHECK(said_to({end, end}) == breach::order);
    CHECK_FALSE(said_to({end, data({0, 1}), data({1, 0})}, true));
    CHECK(said_to({data({0, 0}), data({0, 1})}, true) == breach::order);
}

TEST_CASE("hosts streams hostile: more than the window of a stream is a breach") {
    if (would_leave_threads())
        return;
    far_pair both(two(), command("true"), true);
    both.at_output([&] {
        std::optional<breach> broken;
        std::size_t sent = 0;
        while (!broken && sent < std::size_t{64} << 20) {
            broken = both.origin->heard({{frame_kind::data, 1}, data({0, 0}, 60'000)});
            sent += 60'000;
        }
        CHECK(broken == breach::credit);
        // What the group's queue holds, and the windows.
        CHECK(sent < (std::size_t{1} << 20) + stream_window + reserve_of(0) + 200'000);
        CHECK_FALSE(both.origin->heard({{frame_kind::data, 1}, data({1, 0}, 60'000)}));
    });
}

TEST_CASE("hosts streams hostile: empty messages cost credit, too") {
    if (would_leave_threads())
        return;
    far_pair both(two(true), command("true"), true);
    both.at_output([&] {
        // The queue is full, so what follows is kept in the windows.
        for (int i = 0; i < 20; ++i)
            CHECK_FALSE(both.origin->heard({{frame_kind::data, 1}, data({1, 0}, 60'000)}));
        std::optional<breach> broken;
        int starts = 0;
        for (; !broken && starts < 1'000'000; ++starts)
            broken = both.origin->heard(
                {{frame_kind::data, 1}, data({0, starts, stream::out, true, 1, 1}, 0)});
        CHECK(broken == breach::credit);
    });
}

TEST_CASE("hosts streams hostile: credit and answers that nobody waits for are a breach") {
    if (would_leave_threads())
        return;
    const auto credit = [](std::optional<int> index, std::uint64_t bytes) {
        return agent_says(frame_kind::data_credit,
                          write_message(stream_credit{index, stream::out, bytes}));
    };
    CHECK(credit(std::nullopt, 1) == breach::overcredit);
    CHECK(credit(0, ~std::uint64_t{0}) == breach::overcredit);
    CHECK(credit(2, 1) == breach::body);
    CHECK_FALSE(credit(0, 0));
    far_pair both(two(), command("true"));
    both.at_output([&] {
        CHECK(both.origin->heard({{frame_kind::input_credit, 1},
                                  write_message(input_answer{0, true})}) == breach::overcredit);
        CHECK(both.origin->heard({{frame_kind::input_credit, 1}, {}}) == breach::body);
    });
}

TEST_CASE("hosts streams hostile: input that nobody may have is a breach") {
    if (would_leave_threads())
        return;
    const auto input = [](const input_head& head, std::size_t size) {
        return agent_says(frame_kind::input,
                          write_data(head, std::vector<std::byte>(size, std::byte{'x'})));
    };
    CHECK_FALSE(input({0, false}, 1'000));
    CHECK(input({0, false}, output::far_writer::window) == breach::credit);
    CHECK(input({0, true}, 1) == breach::order);
    CHECK(input({2, false}, 1) == breach::body);
    far_pair unfed(options(1).stdout_to(lines()), command("true"));
    unfed.at_output([&] {
        CHECK(unfed.agent->heard({{frame_kind::input, 1}, write_data(input_head{}, {})}) ==
              breach::order);
    });
}

TEST_CASE("hosts streams hostile: a stream without credit holds up no other") {
    if (would_leave_threads())
        return;
    const auto how = options(2).stdout_to(lines().when_full(when_full::block));
    far_pair both(how, command("true"), true);
    both.at_output([&] {
        const output::stream_origin first{0, 0, stream::out};
        const output::stream_origin second{1, 0, stream::out};
        const std::string much(60'000, 'x');
        while (both.agent->has_room(first))
            both.agent->take(first, when_full::block, much);
        CHECK(both.agent->has_room(second));
        bool is_told = false;
        both.agent->when_room(first, [&] { return is_told = true; });
        both.agent->take(second, when_full::block, much);
        CHECK(both.agent->has_room(second));
        CHECK_FALSE(is_told);
        CHECK_FALSE(both.agent->heard(
            {{frame_kind::data_credit, 1}, write_message(stream_credit{0, stream::out, 120'000})}));
        CHECK(is_told);
    });
}

TEST_CASE("hosts streams hostile: after close() nothing waits and nothing is sent") {
    if (would_leave_threads())
        return;
    far_pair both(options(1).stdout_to(lines().when_full(when_full::block)), command("true"), true);
    both.at_output([&] {
        const output::stream_origin first{0, 0, stream::out};
        while (both.agent->has_room(first))
            both.agent->take(first, when_full::block, std::string(60'000, 'x'));
        bool is_told = false;
        both.agent->when_room(first, [&] { return is_told = true; });
        both.agent->close();
        CHECK(is_told);
        CHECK(both.agent->has_room(first));
    });
}

}  // namespace hosts_streams_hostile_test
