// SPDX-License-Identifier: BSL-1.0
#include "base/sys/memfd.hpp"
#include "protocol/record/error_json.hpp"
#include "protocol/trace/names.hpp"
#include "protocol/trace/stack.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <system_error>
#include <vector>

#include <unistd.h>

namespace stack_test {

using namespace cohort;

namespace {

std::uintptr_t address_of(const void* thing) { return reinterpret_cast<std::uintptr_t>(thing); }

[[gnu::noinline]] void capture_here(protocol::raw_stack& stack) {
    protocol::capture(stack, __builtin_return_address(0));
    asm volatile("");
}

[[gnu::noinline]] void descend(protocol::raw_stack& stack, int depth) {
    if (depth == 0)
        capture_here(stack);
    else
        descend(stack, depth - 1);
    asm volatile("");
}

std::vector<std::byte> contents(int fd) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(::lseek(fd, 0, SEEK_END)));
    REQUIRE(::pread(fd, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
    return bytes;
}

}  // namespace

TEST_CASE("stack: code and data of this program are in one module, known by its id") {
    static int datum = 0;
    protocol::module code;
    protocol::module data;
    REQUIRE(protocol::find_module(address_of(reinterpret_cast<const void*>(&capture_here)), code));
    REQUIRE(protocol::find_module(address_of(&datum), data));
    CHECK(code.base == data.base);
    CHECK(std::string(code.path).empty());
    REQUIRE_FALSE(code.build_id.empty());
    protocol::module again;
    REQUIRE(protocol::find_module(code.build_id, again));
    CHECK(again.base == code.base);
}

TEST_CASE("stack: a library is a module with a path and another id") {
    protocol::module program;
    protocol::module library;
    REQUIRE(
        protocol::find_module(address_of(reinterpret_cast<const void*>(&capture_here)), program));
    REQUIRE(protocol::find_module(address_of(stdout), library));
    CHECK(std::string(library.path).find("libc") != std::string::npos);
    CHECK(library.base != program.base);
}

TEST_CASE("stack: addresses of the stack, and unmapped ones, are in no module") {
    int local = 0;
    protocol::module found;
    CHECK_FALSE(protocol::find_module(address_of(&local), found));
    CHECK_FALSE(protocol::find_module(std::uintptr_t{0}, found));
    const std::array<std::byte, 4> unknown{};
    CHECK_FALSE(protocol::find_module(std::span<const std::byte>(unknown), found));
    CHECK_FALSE(protocol::find_module(std::span<const std::byte>(), found));
}

TEST_CASE("stack: it begins where it is asked to, and keeps the newest calls") {
    protocol::raw_stack stack;
    descend(stack, 3);
    auto frames = protocol::locate(stack);
    protocol::names().give_to(frames);
    REQUIRE(frames.size() >= 4);
    const auto& newest = frames.back();
    CHECK(newest.function.find("descend(") != std::string::npos);
    CHECK(newest.file.find("stack_test.cpp") != std::string::npos);
    CHECK(newest.line > 0);
    CHECK_FALSE(newest.build_id.empty());
    CHECK(newest.module.find("unit_tests") != std::string::npos);

    descend(stack, 500);
    CHECK(stack.full());
    frames = protocol::locate(stack);
    CHECK(frames.size() == protocol::raw_stack::limit);
}

TEST_CASE("stack: naming leaves frames of other modules, beyond a module's end, or with a name as "
          "they are") {
    protocol::raw_stack stack;
    capture_here(stack);
    auto own = protocol::locate(stack).back();
    std::vector<stack_frame> frames(4, own);
    frames[0].build_id = "00112233";
    frames[1].build_id = "not hexadecimal";
    frames[2].offset = UINT64_MAX / 2;
    frames[3].function = "known";
    const auto before = frames;
    protocol::names().give_to(frames);
    CHECK(frames == before);
}

TEST_CASE("stack: what a handler writes as raw JSON is read back, with odd bytes in a path") {
    std::error_code error;
    const auto file = base::make_memfd("cohort-test", error);
    REQUIRE_FALSE(error);
    protocol::raw_stack stack;
    descend(stack, 2);
    protocol::raw_json::memory memory{};
    protocol::raw_json json(memory, file.get(), 0);
    json.text("{\"signal\":").number(11).text(",\"code\":").number(-6).text(",\"x\":");
    json.quoted("a\"b\\c\n\x01").text(",\"address\":").number(UINT64_MAX);
    json.text(",\"frames\":").frames(stack.calls()).text("}").flush();
    const auto bytes = contents(file.get());
    CHECK(bytes.size() == json.length());
    const auto crash = protocol::read_crash(bytes);
    REQUIRE(crash);
    CHECK(crash->signal == 11);
    CHECK(crash->code == -6);
    CHECK(crash->address == UINT64_MAX);
    CHECK(crash->frames == protocol::locate(stack));
}

TEST_CASE("stack: raw JSON reports that a file cannot be written") {
    protocol::raw_json::memory memory{};
    protocol::raw_json json(memory, -1, 0);
    for (int i = 0; i < 1000; ++i)
        json.text("0123456789");
    json.flush();
    CHECK(json.length() == 0);
}

}  // namespace stack_test
