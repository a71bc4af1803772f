// SPDX-License-Identifier: BSL-1.0
// Two ends of a link in one process, on one loop. The loop never ends: each case has a process of
// its own.
#include "hosts/connection/connection.hpp"
#include "hosts/link/bodies.hpp"
#include "hosts_support.hpp"
#include "reporter.hpp"
#include "sanitizers.hpp"
#include "sys_support.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace hosts_connection_test {

using namespace cohort;
using namespace hosts_link_test;
using namespace cohort::test;
using namespace std::chrono_literals;
using kind = connection_end::kind;
// Pools have others, which are seen where these tests are compiled as one file with theirs.
using multihost::frame_kind;
using multihost::frame_name;

namespace {

constexpr std::size_t largest = std::size_t{16} << 20;
constexpr lease_rules quick{20ms, 200ms};

/// Keeps what one end hears.
class ear final : public connection::listener {
public:
    explicit ear(std::size_t wanted = 1) : wanted_(wanted) {}

    std::vector<message> all() { return got_everything_.get_future().get(); }
    connection_end end() { return has_ended_.get_future().get(); }
    /// Called when a message has come, after it was kept. Set it before both begin.
    std::function<void(const message&)> then;

private:
    void heard(message what) override {
        heard_.push_back(what);
        if (heard_.size() == wanted_)
            got_everything_.set_value(heard_);
        if (then)
            then(what);
    }
    void ended(const connection_end& how) override { has_ended_.set_value(how); }

    const std::size_t wanted_;
    std::vector<message> heard_;
    std::promise<std::vector<message>> got_everything_;
    std::promise<connection_end> has_ended_;
};

std::shared_ptr<base::unique_fd> owned(base::unique_fd fd) {
    return std::make_shared<base::unique_fd>(std::move(fd));
}

struct one_end {
    std::shared_ptr<ear> hears;
    std::shared_ptr<connection> link;
};

/// A pipe whose write end does not block.
pipe_ends open_pipe() {
    auto made = make_pipe();
    (void)::fcntl(made.writer.get(), F_SETFL, O_NONBLOCK);
    return made;
}

/// Both ends, and the loop that they are on.
struct both {
    loop::engine& loop;
    pipe_ends to_agent = open_pipe();
    pipe_ends to_origin = open_pipe();
    one_end origin;
    one_end agent;

    both(loop::engine& on, std::size_t at_origin, std::size_t at_agent, lease_rules rules = {})
        : loop(on) {
        origin.hears = std::make_shared<ear>(at_origin);
        agent.hears = std::make_shared<ear>(at_agent);
        origin.link = std::make_shared<connection>(
            loop, std::move(to_origin.reader), owned(std::move(to_agent.writer)),
            connection::settings{side::origin, std::nullopt, largest, rules});
        agent.link = std::make_shared<connection>(
            loop, std::move(to_agent.reader), owned(std::move(to_origin.writer)),
            connection::settings{side::agent, link_number, largest, rules});
    }
    /// The agent says hello.
    void begin() {
        on_loop([this] {
            origin.link->begin(origin.hears);
            agent.link->begin(agent.hears);
            agent.link->send({frame_kind::hello}, bytes_of("it is me"));
        });
    }
    void on_loop(std::function<void()> what) const {
        std::promise<void> done;
        loop.post([&] {
            what();
            done.set_value();
        });
        done.get_future().wait();
    }
};

void holds(const std::function<bool(loop::engine&)>& body) {
    if (under_tsan)
        return skip(no_threads_in_copies);
    CHECK(in_fork([&] {
              auto& loop = *new loop::engine;
              loop.start();
              return body(loop) ? 0 : 1;
          }) == 0);
}

byte_text pattern(std::size_t size) {
    byte_text made(size);
    for (std::size_t i = 0; i < size; ++i)
        made[i] = static_cast<std::byte>(i * 7 + (i >> 9));
    return made;
}

}  // namespace

TEST_CASE("hosts connection: messages of any size come whole and in order, both ways") {
    holds([](auto& loop) {
        both two(loop, 3, 2);
        two.origin.hears->then = [&](const message& what) {
            if (what.name.kind == frame_kind::hello)
                two.origin.link->send({frame_kind::welcome}, bytes_of("welcome"));
        };
        two.agent.hears->then = [&](const message& what) {
            if (what.name.kind == frame_kind::welcome) {
                two.agent.link->send({frame_kind::ended, 7}, pattern(5'000'001));
                two.agent.link->send({frame_kind::reported, 7});
                two.origin.link->send({frame_kind::start, 7}, pattern(3'000'000));
            }
        };
        two.begin();
        const auto at_origin = two.origin.hears->all();
        const auto at_agent = two.agent.hears->all();
        return at_origin[0] == message{{frame_kind::hello}, bytes_of("it is me")} &&
               at_origin[1] == message{{frame_kind::ended, 7}, pattern(5'000'001)} &&
               at_origin[2] == message{{frame_kind::reported, 7}, {}} &&
               at_agent[0] == message{{frame_kind::welcome}, bytes_of("welcome")} &&
               at_agent[1] == message{{frame_kind::start, 7}, pattern(3'000'000)};
    });
}

TEST_CASE("hosts connection: what is urgent overtakes a large message") {
    holds([](auto& loop) {
        both two(loop, 4, 1);
        two.begin();
        two.on_loop([&] {
            two.agent.link->send({frame_kind::ended, 1}, pattern(9'000'000));
            two.agent.link->send({frame_kind::input_credit, 1}, pattern(5));
            two.agent.link->send({frame_kind::failed, 1}, pattern(5));
        });
        const auto heard = two.origin.hears->all();
        return heard[1].name.kind == frame_kind::input_credit &&
               heard[2].name.kind == frame_kind::failed && heard[3].body.size() == 9'000'000;
    });
}

TEST_CASE("hosts connection: a stop does not overtake the start of its group") {
    holds([](auto& loop) {
        both two(loop, 1, 4);
        two.begin();
        two.on_loop([&] { two.origin.link->send({frame_kind::welcome}); });
        two.on_loop([&] { two.origin.link->send({frame_kind::start, 1}, pattern(9'000'000)); });
        two.on_loop([&] { two.origin.link->send({frame_kind::stop, 1}); });
        two.on_loop([&] { two.origin.link->send({frame_kind::stop, 2}); });
        const auto heard = two.agent.hears->all();
        return heard[1].name == frame_name{frame_kind::stop, 2} &&
               heard[2].name == frame_name{frame_kind::start, 1} &&
               heard[3].name == frame_name{frame_kind::stop, 1};
    });
}

TEST_CASE("hosts connection: an idle link tells its round trip by its beats") {
    holds([](auto& loop) {
        both two(loop, 1, 2, {20ms, 60s});
        two.origin.hears->then = [&](const message&) {
            two.origin.link->send({frame_kind::welcome});
        };
        two.begin();
        (void)two.origin.hears->all();
        for (bool knows = false; !knows;)
            two.on_loop([&] {
                knows = two.origin.link->times().trips().smallest() &&
                        two.agent.link->times().trips().smallest();
            });
        two.on_loop([&] { two.origin.link->send({frame_kind::leave}); });
        return two.agent.hears->all()[1].name.kind == frame_kind::leave;
    });
}

TEST_CASE("hosts connection: an end after bye is no loss, one without is") {
    for (const bool says_bye : {true, false})
        holds([&](auto& loop) {
            both two(loop, 1, 1);
            two.begin();
            (void)two.origin.hears->all();
            two.on_loop([&] {
                if (says_bye)
                    two.agent.link->send({frame_kind::bye});
                two.agent.link->finish();
            });
            return two.origin.hears->end() == connection_end{says_bye ? kind::left : kind::cut};
        });
}

TEST_CASE("hosts connection: silence ends the lease of both ends") {
    holds([](auto& loop) {
        both two(loop, 1, 1, quick);
        // The agent's words go into a pipe that nobody reads.
        auto nowhere = open_pipe();
        auto held = open_pipe();
        auto deaf = std::make_shared<connection>(
            loop, std::move(held.reader), owned(std::move(nowhere.writer)),
            connection::settings{side::agent, link_number, largest, quick});
        auto hears = std::make_shared<ear>();
        two.on_loop([&] {
            deaf->begin(hears);
            deaf->send({frame_kind::hello});
        });
        return hears->end() == connection_end{kind::silent};
    });
}

TEST_CASE(
    "hosts connection: an end that reads nothing for a while goes on, and so does its lease") {
    holds([](auto& loop) {
        both two(loop, 2, 1, quick);
        int heard = 0, heard_meanwhile = 0;
        two.origin.hears->then = [&](const message&) {
            if (++heard > 1)
                return;
            two.origin.link->stop_reading();
            two.origin.link->send({frame_kind::welcome});
            loop.timer().at(std::chrono::steady_clock::now() + 3 * quick.host_timeout, [&] {
                heard_meanwhile = heard - 1;
                two.origin.link->read_on();
            });
        };
        two.agent.hears->then = [&](const message&) {
            two.agent.link->send({frame_kind::ended, 1}, pattern(1'000'000));
        };
        two.begin();
        const auto all = two.origin.hears->all();
        return all[1].body == pattern(1'000'000) && heard_meanwhile == 0 &&
               two.origin.link->moved() > 1'000'000;
    });
}

TEST_CASE("hosts connection: an end that hears nothing any more is lost, although it speaks") {
    holds([](auto& loop) {
        both two(loop, 1, 1, quick);
        auto closed = open_pipe();
        closed.reader = {};
        auto half = open_pipe();
        auto speaks = std::make_shared<connection>(
            loop, std::move(half.reader), owned(std::move(closed.writer)),
            connection::settings{side::origin, std::nullopt, largest, quick});
        auto hears = std::make_shared<ear>();
        std::jthread beats([&](const std::stop_token& stop) {
            const auto send = [&](const byte_text& text) {
                (void)!::write(half.writer.get(), text.data(), text.size());
            };
            send(opened());
            while (!stop.stop_requested()) {
                send(frame({frame_kind::beat}, write_beat({})));
                std::this_thread::sleep_for(quick.beat_period);
            }
        });
        two.on_loop([&] {
            speaks->begin(hears);
            speaks->send({frame_kind::welcome});
        });
        return hears->end() == connection_end{kind::silent};
    });
}

TEST_CASE("hosts connection: bytes that are no frames end it, with the reason") {
    holds([](auto& loop) {
        auto in = open_pipe();
        auto out = open_pipe();
        auto link = std::make_shared<connection>(
            loop, std::move(in.reader), owned(std::move(out.writer)),
            connection::settings{side::origin, std::nullopt, largest, {}});
        auto hears = std::make_shared<ear>();
        std::promise<void> begun;
        loop.post([&] {
            link->begin(hears);
            begun.set_value();
        });
        begun.get_future().wait();
        auto bytes = bytes_of("Last login: yesterday\n") + opened();
        bytes.push_back(std::byte{'x'});
        const auto more = pattern(100);
        bytes.insert(bytes.end(), more.begin(), more.end());
        (void)!::write(in.writer.get(), bytes.data(), bytes.size());
        const auto how = hears->end();
        return how == connection_end{kind::broken, breach::header_checksum} &&
               link->noise() == "Last login: yesterday\n";
    });
}

}  // namespace hosts_connection_test
