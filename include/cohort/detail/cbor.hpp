// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <typeinfo>
#include <vector>

// CBOR (RFC 8949) as worker and parent write it for each other: every length is known in advance.
namespace cohort::detail::inline v0_1 {

/// Appends values to a text of CBOR.
class COHORT_API cbor_writer {
public:
    void null();
    void boolean(bool value);
    void integer(std::int64_t value);
    void unsigned_integer(std::uint64_t value);
    void floating(double value);
    void text(std::string_view value);
    void binary(std::span<const std::byte> value);
    /// So many values follow, which are its elements.
    void array(std::size_t size);
    /// A whole value that is CBOR already.
    void value(std::span<const std::byte> cbor);

    const std::vector<std::byte>& bytes() const noexcept { return bytes_; }
    std::vector<std::byte> take() noexcept;

private:
    void head(unsigned major, std::uint64_t argument);

    std::vector<std::byte> bytes_;
};

/// Takes values out of a text of CBOR, one after the other. Each call throws codec_error when the
/// next value is of another kind, or no CBOR: "a string is expected, array was found".
class COHORT_API cbor_reader {
public:
    /// An integer of either sign: its magnitude, or -1 minus that.
    struct integer_value {
        bool negative = false;
        std::uint64_t magnitude = 0;

        /// @throws codec_error  always: "300 does not fit into unsigned char"
        [[noreturn]] COHORT_API void refuse(const std::type_info& type) const;
    };

    /// @param bytes  must live as long as this
    explicit cbor_reader(std::span<const std::byte> bytes) noexcept : rest_(bytes) {}

    /// Takes a null; false, and nothing is taken, when something else is next.
    bool take_null();
    void null();
    bool boolean();
    integer_value integer();
    /// An integer is a number too.
    double number();
    std::string_view text();
    /// @param wanted  for the error: "bytes"
    std::span<const std::byte> binary(const char* wanted);
    /// The same, of the size of `target`.
    void binary_into(std::span<std::byte> target, const char* wanted);
    /// How many elements follow: never more than there are bytes.
    std::size_t array();
    /// The same for an array of this size.
    void array(std::size_t size);
    /// The bytes of a whole value, whatever it is.
    std::span<const std::byte> value();
    /// @throws codec_error  something is left
    void end() const;

private:
    struct head_value {
        unsigned major = 0;
        unsigned short_argument = 0;
        std::uint64_t argument = 0;
    };
    head_value head();
    std::span<const std::byte> take(std::uint64_t size);
    head_value expect(unsigned major, const char* wanted);
    [[noreturn]] void refuse(const char* wanted);

    std::span<const std::byte> rest_;
};

}  // namespace cohort::detail::inline v0_1
