// SPDX-License-Identifier: BSL-1.0
// What comes over a link may be anything: libFuzzer makes it up for both ends, and here is what
// holds for what is read. The first byte of an input tells which end reads and how the bytes are
// cut; the next ones are steps, each of which adds frames or other bytes to what is sent.
#include "holds.hpp"
#include "hosts/link/bodies.hpp"
#include "hosts/link/checksum.hpp"
#include "hosts/link/credits.hpp"
#include "hosts/link/frame.hpp"
#include "hosts/link/frame_reader.hpp"
#include "hosts/link/lease.hpp"
#include "hosts/link/remote_part.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace cohort::fuzz;
using namespace cohort::multihost;

namespace {

using fuzz_bytes = std::vector<std::byte>;
constexpr std::uint64_t fuzz_session = 77;
constexpr std::size_t largest_message = 600;

/// What is left of an input.
struct input {
    bytes rest;

    std::uint8_t number() {
        if (rest.empty())
            return 0;
        const auto next = std::to_integer<std::uint8_t>(rest.front());
        rest = rest.subspan(1);
        return next;
    }
    bytes take(std::size_t count) {
        const auto taken = rest.first(std::min(count, rest.size()));
        rest = rest.subspan(taken.size());
        return taken;
    }
};

/// Makes what is sent, and knows which messages a reader must make of it.
struct sender {
    explicit sender(side end) : from(end), writer(end, fuzz_session) {}

    void add(bytes more) { sent.insert(sent.end(), more.begin(), more.end()); }
    void add_written() { add(writer.take()); }

    void open() {
        writer.add_greeting();
        writer.add({first_kind(from)}, {});
        add_written();
        wanted.push_back({{first_kind(from)}, {}});
    }
    /// A whole message.
    void add_message(input& in, std::uint8_t kind) {
        const frame_name name{static_cast<frame_kind>(kind), in.number()};
        const auto body = in.take(in.number());
        writer.add(name, body);
        add_written();
        wanted.push_back({name, {body.begin(), body.end()}});
    }
    /// A message in pieces, with a beat between them.
    void add_pieces(input& in, std::uint8_t kind) {
        const frame_name name{static_cast<frame_kind>(kind), in.number()};
        const std::size_t longest = 1 + in.number() % 64;
        const auto body = in.take(in.number());
        for (std::size_t done = 0; done < body.size();) {
            done = writer.add_piece(name, body, done, longest);
            if (done < body.size()) {
                writer.add({frame_kind::beat}, {});
                wanted.push_back({{frame_kind::beat}, {}});
            }
        }
        add_written();
        if (!body.empty())
            wanted.push_back({name, {body.begin(), body.end()}});
    }
    /// A frame whose header says anything, with a right checksum.
    void add_odd(input& in) {
        frame_header header{from, fuzz_session, 0, 0, 0, 0, 0, 0};
        const auto what = in.number();
        if (what % 8 == 1)
            header.from = other(from);
        if (what % 8 == 2)
            header.session = in.number();
        if (what % 8 == 3)
            header.zero = in.number();
        header.kind = in.number();
        header.flags = in.number() % 8;
        header.group = in.number();
        const auto body = in.take(in.number());
        header.length = static_cast<std::uint32_t>(counted_header + body.size());
        if (what % 8 == 4)
            header.length = in.number() << (in.number() % 25);
        header.body_checksum = crc32c(body);
        const auto written = write_header(header);
        add(written);
        add(body);
        add(std::as_bytes(std::span("\n", 1)));
        is_odd = true;
    }
    void damage(input& in) {
        if (sent.empty())
            return;
        const std::size_t at = (in.number() | in.number() << 8) % sent.size();
        sent[at] ^= static_cast<std::byte>(in.number());
        is_odd = true;
    }
    void step(input& in) {
        const auto what = in.number();
        const auto kind = in.number();
        const bool is_right = may_send(from, kind) &&
                              kind != static_cast<std::uint8_t>(first_kind(from)) &&
                              !wanted.empty() && !is_odd;
        switch (what % 8) {
        case 0:
            if (wanted.empty() && !is_odd)
                open();
            break;
        case 1:
        case 2:
            if (is_right)
                add_message(in, kind);
            break;
        case 3:
            if (is_right)
                add_pieces(in, kind);
            break;
        case 4:
            add_odd(in);
            break;
        case 5:
            damage(in);
            break;
        case 6:  // noise, as long as there is no greeting
            is_odd = is_odd || !wanted.empty();
            add(in.take(kind));
            if (std::ranges::find(sent, greeting(from).front()) != sent.end())
                is_odd = true;
            break;
        case 7:
            if (kind % 2 == 0 && !sent.empty() && wanted.empty())
                sent.insert(sent.end(), std::size_t{kind} * 256, std::byte{'.'});
            else
                add(greeting(kind % 4 == 1 ? from : other(from)));
            is_odd = true;
            break;
        }
    }

    side from;
    frame_writer writer;
    fuzz_bytes sent;
    std::vector<message> wanted;
    bool is_odd = false;  // it may hold what is not wanted
};

struct reading {
    std::vector<message> messages;
    std::optional<breach> broken;
    std::string noise;

    friend bool operator==(const reading&, const reading&) = default;
};

/// @param cut  how many bytes come at once
reading read_cut(const fuzz_bytes& sent, side from, std::size_t cut) {
    frame_reader reader(from, largest_message);
    reading result;
    bytes rest(sent);
    while (!rest.empty()) {
        const auto before = result.messages.size();
        const auto next = rest.first(std::min(cut, rest.size()));
        const auto broken = reader.feed(next, result.messages);
        rest = rest.subspan(next.size());
        HOLDS(broken == reader.broken());
        HOLDS(!result.broken || (broken == result.broken && result.messages.size() == before));
        HOLDS(reader.held() <= 2 * (sent.size() - rest.size()) + 64);
        HOLDS(reader.noise().size() <= greeting_search::most_noise);
        result.broken = broken;
    }
    result.noise = reader.noise();
    return result;
}

/// What the owner of the origin's end does with what the agent says.
void hand_on(const std::vector<message>& messages) {
    const time_point begin{std::chrono::hours(1)};
    auto now = begin;
    sender_credit sender(100);
    receiver_credit receiver(100);
    lease of({}, now);
    remote_part part(2, std::chrono::seconds(10));
    part.on({part_event::kind::start}, now);
    int ends = 0;
    for (const auto& each : messages) {
        now += std::chrono::milliseconds(1);
        part_event e{part_event::kind::deadline};
        switch (each.name.kind) {
        case frame_kind::beat:
            of.make_beat(now);
            if (const auto got = read_beat(each.body))
                of.received_beat(*got, now + std::chrono::microseconds(5));
            break;
        case frame_kind::input_credit:
            sender.take(3);
            (void)sender.given(each.body.size());
            break;
        case frame_kind::data:
            if (!receiver.received(each.body.size()))
                receiver.consumed(each.body.size() / 2);
            (void)receiver.take_due();
            break;
        case frame_kind::started:
            e.what = part_event::kind::started;
            break;
        case frame_kind::not_started:
            e.what = part_event::kind::not_started;
            break;
        case frame_kind::ended:
            e.what = part_event::kind::ended;
            e.worker = each.body.size();
            break;
        case frame_kind::reported:
            e.what = part_event::kind::reported;
            break;
        default:
            break;
        }
        for (const auto& action : part.on(e, now))
            ends += action.what == part_action::kind::close ? 1 : 0;
        HOLDS(sender.left() <= 100);
        HOLDS(receiver.held() <= 100);
        const auto trip = of.trips().smallest();
        HOLDS(!trip || (trip->count() >= 0 && *trip <= now - begin + std::chrono::seconds(1)));
    }
    for (const auto& action : part.on({part_event::kind::cut}, now))
        ends += action.what == part_action::kind::close ? 1 : 0;
    HOLDS(ends == 1);
    HOLDS(part.is_over());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    input in{bytes(reinterpret_cast<const std::byte*>(data), size)};
    const auto how = in.number();
    sender made(how % 2 == 0 ? side::agent : side::origin);
    while (!in.rest.empty() && made.sent.size() < 200'000)
        made.step(in);
    const auto whole = read_cut(made.sent, made.from, made.sent.size());
    HOLDS(read_cut(made.sent, made.from, 1 + how / 2) == whole);
    if (made.sent.size() < 5'000)
        HOLDS(read_cut(made.sent, made.from, 1) == whole);
    if (!made.is_odd) {
        HOLDS(!whole.broken);
        HOLDS(whole.messages == made.wanted);
    }
    if (whole.broken)
        HOLDS(std::strlen(to_string(*whole.broken)) > 0);
    for (const auto& each : whole.messages)
        HOLDS(each.body.size() <= largest_message);
    if (made.from == side::agent)
        hand_on(whole.messages);
    return 0;
}
