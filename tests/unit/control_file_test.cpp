// SPDX-License-Identifier: BSL-1.0
#include "protocol/record/control.hpp"

#include "protocol/record/error_json.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <string>

namespace control_file_test {

using namespace cohort;
using namespace cohort::protocol;

namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

std::string random_bytes(std::mt19937& random, std::size_t length) {
    std::string text(length, '\0');
    for (char& c : text)
        c = static_cast<char>(random());
    return text;
}

std::string control_file(const control_progress& progress, const std::string& payload) {
    std::string file(payload_offset, '\0');
    const control_order order;
    std::memcpy(file.data(), &order, sizeof order);
    std::memcpy(file.data() + progress_offset, &progress, sizeof progress);
    return file + payload;
}

control_progress progress_of(payload_kind kind, std::uint32_t type_length,
                             std::uint64_t payload_length) {
    control_progress progress;
    progress.entered_at = 1000;
    progress.finished_at = 2000;
    progress.kind = kind;
    progress.type_length = type_length;
    progress.payload_length = payload_length;
    return progress;
}

}  // namespace

TEST_CASE("control file: an order keeps the key and all arguments") {
    function_key key;
    key.offset = 0x1234'5678'9abc;
    key.module_length = 20;
    key.module[0] = 7;
    key.module[38] = 9;
    const auto order = make_order(3, 8, 4711, 61, key, 15, std::chrono::seconds(30));
    CHECK(order.magic == control_magic);
    CHECK(order.index == 3);
    CHECK(order.size == 8);
    CHECK(order.parent == 4711);
    CHECK(order.arguments_fd == 61);
    CHECK(order.stop_signal == 15);
    CHECK(order.grace_period_ns == 30'000'000'000);
    CHECK(key_of(order) == key);
}

TEST_CASE("control file: a result is its type's name and its CBOR") {
    const std::string file = control_file(progress_of(payload_kind::returned, 2, 5), "ixABC");
    const auto contents = read_control(bytes_of(file), file.size());
    CHECK(contents.kind == payload_kind::returned);
    CHECK(!contents.torn);
    CHECK(contents.entered_at->time_since_epoch().count() == 1000);
    CHECK(contents.finished_at->time_since_epoch().count() == 2000);
    CHECK(contents.result_type == "ix");
    CHECK(contents.result_cbor.size() == 3);
    CHECK(contents.error.empty());
}

TEST_CASE("control file: an error is its bytes") {
    const std::string file = control_file(progress_of(payload_kind::raised, 0, 4), "oops and more");
    const auto contents = read_control(bytes_of(file), file.size());
    CHECK(contents.kind == payload_kind::raised);
    CHECK(read_error(contents.error, contents.error.size(), {})->message == "oops");
    CHECK(contents.result_type.empty());
}

TEST_CASE("control file: a file that is too short reports how many bytes are missing") {
    const std::string file =
        control_file(progress_of(payload_kind::returned, 0, 1000), std::string(1000, 'x'));
    const auto first = read_control(bytes_of(file).first(600), file.size());
    CHECK(first.needed == payload_offset + 1000);
    CHECK(!first.torn);
    CHECK(first.result_cbor.empty());
    CHECK(read_control(bytes_of(file).first(first.needed), file.size()).result_cbor.size() == 1000);
}

TEST_CASE("control file: a call of exit has a time of its own") {
    std::string file = control_file({}, "");
    CHECK(!read_control(bytes_of(file), file.size()).exit_called_at);
    const std::int64_t stamp = 3000;
    std::memcpy(file.data() + exit_offset, &stamp, sizeof stamp);
    const auto called = read_control(bytes_of(file), file.size()).exit_called_at;
    REQUIRE(called);
    CHECK(called->time_since_epoch() == std::chrono::nanoseconds(3000));
    CHECK(!read_control(bytes_of(file).first(exit_offset), file.size()).exit_called_at);
}

TEST_CASE("control file: an order alone says that nothing was reached") {
    const std::string file(256, '\0');
    const auto contents = read_control(bytes_of(file), file.size());
    CHECK(!contents.entered_at);
    CHECK(!contents.finished_at);
    CHECK(contents.kind == payload_kind::none);
    CHECK(!contents.torn);
}

TEST_CASE("control file: lengths beyond the file's end and unknown kinds make it invalid") {
    for (const auto& progress :
         {progress_of(payload_kind::returned, 2, 6), progress_of(payload_kind::returned, 6, 5),
          progress_of(payload_kind::raised, 0, std::uint64_t(-1)),
          progress_of(payload_kind::none, 0, 1),
          progress_of(payload_kind::returned, 0, std::uint64_t(-512)),
          progress_of(payload_kind{77}, 0, 0)}) {
        const std::string file = control_file(progress, "ixABC");
        const auto contents = read_control(bytes_of(file), file.size());
        CHECK(contents.torn);
        CHECK(contents.kind <= payload_kind::raised);
        CHECK(contents.needed == payload_offset);
        CHECK(contents.result_cbor.empty());
        CHECK(contents.error.empty());
    }
}

TEST_CASE("control file: only a result may be of any size") {
    constexpr auto size = std::uint64_t{1} << 33;
    for (const auto kind :
         {payload_kind::raised, payload_kind::terminated, payload_kind::crashed}) {
        const auto forged = read_control(
            bytes_of(control_file(progress_of(kind, 0, size - payload_offset), "")), size);
        CHECK(forged.torn);
        CHECK(forged.kind == kind);
        CHECK(forged.needed == payload_offset);
    }
    const auto large = read_control(
        bytes_of(control_file(progress_of(payload_kind::returned, 0, size - payload_offset), "")),
        size);
    CHECK(large.needed == size);
}

TEST_CASE("control file: random bytes of any length are read without harm") {
    std::mt19937 random(7);
    for (int round = 0; round < 10'000; ++round) {
        std::string file = random_bytes(random, random() % 800);
        if (round % 2 == 0 && file.size() > progress_offset + sizeof(control_progress)) {
            auto progress = progress_of(static_cast<payload_kind>(random() % 4), random() % 300,
                                        random() % 300);
            std::memcpy(file.data() + progress_offset, &progress, sizeof progress);
        }
        const auto contents =
            read_control(bytes_of(file), random() % 2 == 0 ? file.size() : random());
        const std::size_t held =
            contents.result_type.size() + contents.result_cbor.size() + contents.error.size();
        CHECK(held <= file.size());
    }
}

}  // namespace control_file_test
