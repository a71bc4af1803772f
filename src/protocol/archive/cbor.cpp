// SPDX-License-Identifier: BSL-1.0
#include <cohort/detail/cbor.hpp>

#include <cohort/detail/type_name.hpp>
#include <cohort/errors.hpp>

#include <algorithm>
#include <bit>
#include <limits>
#include <string>
#include <utility>

namespace cohort::detail::inline v0_1 {

namespace {

// The major types of RFC 8949.
constexpr unsigned unsigned_major = 0;
constexpr unsigned negative_major = 1;
constexpr unsigned binary_major = 2;
constexpr unsigned text_major = 3;
constexpr unsigned array_major = 4;
constexpr unsigned object_major = 5;
constexpr unsigned tag_major = 6;
constexpr unsigned simple_major = 7;

constexpr unsigned simple_false = 20;
constexpr unsigned simple_true = 21;
constexpr unsigned simple_null = 22;
constexpr unsigned simple_float = 26;
constexpr unsigned simple_double = 27;

[[noreturn]] void refuse_bytes(const char* why) {
    throw codec_error(std::string("not valid CBOR: ") + why);
}

/// The kind of a value, with the name that nlohmann-json gives it.
const char* kind_of(unsigned major, unsigned argument) {
    switch (major) {
    case unsigned_major:
    case negative_major:
        return "number";
    case binary_major:
        return "binary";
    case text_major:
        return "string";
    case array_major:
        return "array";
    case object_major:
        return "object";
    case simple_major:
        switch (argument) {
        case simple_false:
        case simple_true:
            return "boolean";
        case simple_null:
            return "null";
        case simple_float:
        case simple_double:
            return "number";
        }
    }
    return "something unknown";
}

}  // namespace

void cbor_writer::head(unsigned major, std::uint64_t argument) {
    const auto start = static_cast<std::byte>(major << 5);
    if (argument < 24) {
        bytes_.push_back(start | static_cast<std::byte>(argument));
        return;
    }
    const int log = argument <= 0xFF ? 0 : argument <= 0xFFFF ? 1 : argument <= 0xFFFFFFFF ? 2 : 3;
    bytes_.push_back(start | static_cast<std::byte>(24 + log));
    for (int shift = (8 << log) - 8; shift >= 0; shift -= 8)
        bytes_.push_back(static_cast<std::byte>(argument >> shift));
}

void cbor_writer::null() { head(simple_major, simple_null); }
void cbor_writer::boolean(bool value) { head(simple_major, value ? simple_true : simple_false); }
void cbor_writer::unsigned_integer(std::uint64_t value) { head(unsigned_major, value); }
void cbor_writer::integer(std::int64_t value) {
    if (value >= 0)
        head(unsigned_major, static_cast<std::uint64_t>(value));
    else
        head(negative_major, ~static_cast<std::uint64_t>(value));
}
void cbor_writer::floating(double value) {
    bytes_.push_back(static_cast<std::byte>(simple_major << 5 | simple_double));
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (int shift = 56; shift >= 0; shift -= 8)
        bytes_.push_back(static_cast<std::byte>(bits >> shift));
}
void cbor_writer::text(std::string_view value) {
    head(text_major, value.size());
    this->value(std::as_bytes(std::span(value)));
}
void cbor_writer::binary(std::span<const std::byte> value) {
    head(binary_major, value.size());
    this->value(value);
}
void cbor_writer::array(std::size_t size) { head(array_major, size); }
void cbor_writer::value(std::span<const std::byte> cbor) {
    bytes_.insert(bytes_.end(), cbor.begin(), cbor.end());
}
std::vector<std::byte> cbor_writer::take() noexcept { return std::exchange(bytes_, {}); }

void cbor_reader::integer_value::refuse(const std::type_info& type) const {
    std::string text = std::to_string(magnitude);
    if (negative)
        text = magnitude == std::numeric_limits<std::uint64_t>::max()
                   ? "-18446744073709551616"
                   : "-" + std::to_string(magnitude + 1);
    throw codec_error(text + " does not fit into " + type_name(type));
}

std::span<const std::byte> cbor_reader::take(std::uint64_t size) {
    if (size > rest_.size())
        refuse_bytes("it ends within a value");
    const auto taken = rest_.first(static_cast<std::size_t>(size));
    rest_ = rest_.subspan(taken.size());
    return taken;
}

cbor_reader::head_value cbor_reader::head() {
    const auto first = std::to_integer<unsigned>(take(1)[0]);
    head_value found{first >> 5, first & 31, first & 31};
    if (found.short_argument < 24)
        return found;
    if (found.short_argument > 27)
        refuse_bytes("the length of a value is missing");
    found.argument = 0;
    for (const auto byte : take(1U << (found.short_argument - 24)))
        found.argument = found.argument << 8 | std::to_integer<std::uint64_t>(byte);
    return found;
}

void cbor_reader::refuse(const char* wanted) {
    const auto found = head();
    throw codec_error(std::string(wanted) + " is expected, " +
                      kind_of(found.major, found.short_argument) + " was found");
}

cbor_reader::head_value cbor_reader::expect(unsigned major, const char* wanted) {
    auto ahead = *this;
    const auto found = ahead.head();
    if (found.major != major)
        refuse(wanted);
    *this = ahead;
    return found;
}

bool cbor_reader::take_null() {
    if (rest_.empty() || rest_[0] != static_cast<std::byte>(simple_major << 5 | simple_null))
        return false;
    rest_ = rest_.subspan(1);
    return true;
}

void cbor_reader::null() {
    if (!take_null())
        refuse("null");
}

bool cbor_reader::boolean() {
    auto ahead = *this;
    const auto found = ahead.head();
    if (found.major != simple_major ||
        (found.short_argument != simple_true && found.short_argument != simple_false))
        refuse("a boolean");
    *this = ahead;
    return found.short_argument == simple_true;
}

cbor_reader::integer_value cbor_reader::integer() {
    auto ahead = *this;
    const auto found = ahead.head();
    if (found.major != negative_major)
        return {false, expect(unsigned_major, "an integer").argument};
    *this = ahead;
    return {true, found.argument};
}

double cbor_reader::number() {
    auto ahead = *this;
    const auto found = ahead.head();
    if (found.major == unsigned_major || found.major == negative_major) {
        const auto whole = integer();
        const auto magnitude = static_cast<double>(whole.magnitude);
        return whole.negative ? -1 - magnitude : magnitude;
    }
    if (found.major != simple_major ||
        (found.short_argument != simple_float && found.short_argument != simple_double))
        refuse("a number");
    *this = ahead;
    if (found.short_argument == simple_double)
        return std::bit_cast<double>(found.argument);
    return std::bit_cast<float>(static_cast<std::uint32_t>(found.argument));
}

std::string_view cbor_reader::text() {
    const auto bytes = take(expect(text_major, "a string").argument);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> cbor_reader::binary(const char* wanted) {
    return take(expect(binary_major, wanted).argument);
}

void cbor_reader::binary_into(std::span<std::byte> target, const char* wanted) {
    const auto bytes = binary(wanted);
    if (bytes.size() != target.size())
        throw codec_error(std::to_string(target.size()) + " bytes are expected, " +
                          std::to_string(bytes.size()) + " were found");
    std::ranges::copy(bytes, target.begin());
}

std::size_t cbor_reader::array() {
    const auto size = expect(array_major, "an array").argument;
    if (size > rest_.size())
        refuse_bytes("an array is longer than what follows");
    return static_cast<std::size_t>(size);
}

void cbor_reader::array(std::size_t size) {
    if (const auto found = array(); found != size)
        throw codec_error("an array of " + std::to_string(size) + " is expected, one of " +
                          std::to_string(found) + " was found");
}

std::span<const std::byte> cbor_reader::value() {
    const auto whole = rest_;
    // Each missing value takes at least one byte, so the loop ends with the bytes.
    for (std::uint64_t missing = 1; missing != 0; --missing) {
        const auto found = head();
        switch (found.major) {
        case binary_major:
        case text_major:
            take(found.argument);
            break;
        case array_major:
        case object_major:
            if (found.argument > rest_.size())
                refuse_bytes("an array is longer than what follows");
            missing += found.major == array_major ? found.argument : 2 * found.argument;
            break;
        case tag_major:
            ++missing;
            break;
        }
    }
    return whole.first(whole.size() - rest_.size());
}

void cbor_reader::end() const {
    if (!rest_.empty())
        refuse_bytes("something is left after the value");
}

}  // namespace cohort::detail::inline v0_1
