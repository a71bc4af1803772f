// SPDX-License-Identifier: BSL-1.0
#include "protocol/trace/raw_json.hpp"

#include "protocol/trace/modules.hpp"

#include <cerrno>

#include <unistd.h>

namespace cohort::protocol {
namespace {

constexpr char digits_of[] = "0123456789abcdef";

}  // namespace

void raw_json::put(char c) noexcept {
    if (held_ == buffer_.size())
        flush();
    buffer_[held_++] = c;
}

raw_json& raw_json::text(std::string_view literal) noexcept {
    for (const char c : literal)
        put(c);
    return *this;
}

raw_json& raw_json::digits(bool negative, std::uint64_t value) noexcept {
    if (negative) {
        put('-');
        value = 0 - value;
    }
    std::array<char, 20> text;
    std::size_t at = text.size();
    do {
        text[--at] = digits_of[value % 10];
        value /= 10;
    } while (value != 0);
    return this->text({text.data() + at, text.size() - at});
}

raw_json& raw_json::quoted(std::string_view value) noexcept {
    put('"');
    for (const char c : value) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            put('\\');
            put(c);
        } else if (byte < 0x20) {
            text("\\u00");
            put(digits_of[byte >> 4]);
            put(digits_of[byte & 0xF]);
        } else {
            put(c);
        }
    }
    put('"');
    return *this;
}

void raw_json::module_of(std::uintptr_t call) noexcept {
    protocol::module at;
    if (!protocol::find_module(call, at)) {
        text("\"o\":").number(call);
        return;
    }
    std::string_view path = at.path;
    if (path.empty()) {
        if (program_path_.empty()) {
            const auto found = program_path(program_);
            program_path_ = {found.data(), found.size()};
        }
        path = program_path_;
    }
    text("\"m\":").quoted(path).text(",\"b\":\"");
    for (const std::byte b : at.build_id) {
        put(digits_of[std::to_integer<unsigned>(b) >> 4]);
        put(digits_of[std::to_integer<unsigned>(b) & 0xF]);
    }
    text("\",\"o\":").number(call - at.base);
}

raw_json& raw_json::frames(std::span<const std::uintptr_t> calls) noexcept {
    put('[');
    for (std::size_t i = 0; i < calls.size(); ++i) {
        text(i == 0 ? "{" : ",{");
        module_of(calls[i]);
        put('}');
        flush();
    }
    put(']');
    return *this;
}

void raw_json::flush() noexcept {
    std::size_t done = 0;
    while (done < held_ && !broken_) {
        const ssize_t count = offset_ < 0
                                  ? ::write(fd_, buffer_.data() + done, held_ - done)
                                  : ::pwrite(fd_, buffer_.data() + done, held_ - done, offset_);
        if (count < 0 && errno == EINTR)
            continue;
        broken_ = count <= 0;
        if (broken_)
            break;
        done += static_cast<std::size_t>(count);
        length_ += static_cast<std::size_t>(count);
        if (offset_ >= 0)
            offset_ += count;
    }
    held_ = 0;
}

}  // namespace cohort::protocol
