// SPDX-License-Identifier: BSL-1.0
// What another host says may be anything: it is a value within its limits, or a sentence.
#include "hosts/values/messages.hpp"
#include "hosts/values/plan_bytes.hpp"
#include "hosts_values_ends.hpp"
#include "hosts_values_support.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <malloc.h>

namespace hosts_values_hostile_test {

using namespace cohort;
using namespace cohort::multihost;
using namespace cohort::test;

namespace {

using bytes = std::vector<std::byte>;

constexpr int workers = 10;

/// Reads bytes as one kind of message. @return the problem; empty: there is none
using reading = std::string (*)(std::span<const std::byte>);

std::string as_end(std::span<const std::byte> given) {
    const auto here = some_place(workers);
    auto read = read_end(given, here);
    if (!read)
        return read.problem;
    const auto& left = *read->left;
    CHECK(left.index >= 0);
    CHECK(left.index < workers);
    CHECK(left.started >= here.earliest);
    CHECK(left.started <= left.ended);
    CHECK(left.ended <= here.now);
    CHECK(read->event_time >= left.started);
    CHECK(read->event_time <= left.ended);
    CHECK(left.cause <= cause::output_limit);
    read->whole();
    return "";
}

std::string as_plan(std::span<const std::byte> given) {
    auto read = read_plan(given);
    if (!read)
        return read.problem;
    REQUIRE(read->part);
    CHECK(read->part->index >= 0);
    CHECK(read->part->size - read->part->index >= read->settings.nprocs);
    return "";
}

template <class Message>
std::string as_message(std::span<const std::byte> given) {
    return read_message<Message>(given, workers).problem;
}

struct kind {
    const char* name;
    bytes good;
    reading read;
    int changes;
};

std::vector<kind> kinds() {
    const hello said{hello::current_version, "f00d", "cafe", "node03", {"cgroup"}, 77};
    const welcome answer{{{"A", "b"}}, "/tmp", std::chrono::seconds(1)};
    const detail::start_failure failure{std::make_error_code(std::errc::no_such_file_or_directory),
                                        "exec", 3, "exec"};
    const used_resources used{{{3, std::chrono::nanoseconds(5), 6, 7, 'S'}}};
    return {
        {"end", write_end(some_end(9), agents_now), &as_end, 50'000},
        {"plan", write_plan(plan_maker(1, true).of_commands(3), {1, 2}), &as_plan, 30'000},
        {"hello", write_message(said), &as_message<hello>, 10'000},
        {"welcome", write_message(answer), &as_message<welcome>, 10'000},
        {"failure", write_message(failure), &as_message<detail::start_failure>, 10'000},
        {"usage", write_message(used), &as_message<used_resources>, 10'000},
    };
}

std::size_t memory_in_use() {
    const auto all = ::mallinfo2();
    return all.uordblks + all.hblkhd;
}

}  // namespace

TEST_CASE("hosts values hostile: a part of a message is never read as a whole one") {
    for (const auto& kind : kinds()) {
        CAPTURE(kind.name);
        CHECK(kind.read(kind.good) == "");
        for (std::size_t size = 0; size < kind.good.size(); ++size) {
            CAPTURE(size);
            CHECK(kind.read(std::span(kind.good).first(size)).find("can't be read: ") !=
                  std::string::npos);
        }
        auto longer = kind.good;
        longer.push_back(std::byte{0});
        CHECK(kind.read(longer).ends_with("something is left after the value"));
    }
}

TEST_CASE("hosts values hostile: changed bytes are a value within its limits or a sentence") {
    std::mt19937 random(1);
    int refused = 0;
    int taken = 0;
    for (const auto& kind : kinds()) {
        CAPTURE(kind.name);
        for (int i = 0; i < kind.changes; ++i) {
            CAPTURE(i);
            auto changed = kind.good;
            for (auto left = random() % 4 + 1; left > 0; --left)
                changed[random() % changed.size()] = static_cast<std::byte>(random());
            (kind.read(changed).empty() ? taken : refused) += 1;
        }
    }
    CHECK(refused > 10'000);
    CHECK(taken > 10'000);
}

TEST_CASE("hosts values hostile: noise is refused") {
    std::mt19937 random(2);
    for (const auto& kind : kinds())
        for (int i = 0; i < 2'000; ++i) {
            bytes noise(random() % 300);
            for (auto& byte : noise)
                byte = static_cast<std::byte>(random());
            kind.read(noise);
        }
}

TEST_CASE("hosts values hostile: a length that is claimed takes no memory") {
    for (const unsigned char major : {0x40, 0x80, 0xA0}) {
        // Bytes, a list and a map of 2^60.
        const bytes claim{static_cast<std::byte>(major | 27),
                          std::byte{0x10},
                          std::byte{0},
                          std::byte{0},
                          std::byte{0},
                          std::byte{0},
                          std::byte{0},
                          std::byte{0},
                          std::byte{0}};
        for (const auto& kind : kinds()) {
            CAPTURE(kind.name);
            for (std::size_t at = 0; at < kind.good.size(); ++at) {
                auto changed = bytes(kind.good.begin(), kind.good.begin() + std::ptrdiff_t(at));
                changed.insert(changed.end(), claim.begin(), claim.end());
                changed.insert(changed.end(), kind.good.begin() + std::ptrdiff_t(at),
                               kind.good.end());
                CHECK(kind.read(changed) != "");
            }
        }
    }
}

TEST_CASE(
    "hosts values hostile: the smallest of parts take no more than a multiple of their bytes") {
    auto left = some_outcome(9, 0);
    activity one;
    one.frames.assign(256, stack_frame());
    left.at_stop.assign(256, one);
    const auto dense = write_end(worker_with(left), agents_now);
    const auto before = memory_in_use();
    auto read = read_end(dense, some_place(workers));
    REQUIRE_MESSAGE(read, read.problem);
    CHECK(read->left->at_stop.size() == 256);
    CHECK(memory_in_use() < before + 64 * dense.size());
}

}  // namespace hosts_values_hostile_test
