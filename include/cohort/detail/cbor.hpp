// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <vector>

// CBOR (RFC 8949) as worker and parent exchange it: every length is definite.
namespace cohort::detail::inline v0_1 {

/// Encodes values as CBOR, one after the other.
class COHORT_API cbor_writer {
public:
    void null();
    void boolean(bool value);
    void integer(std::int64_t value);
    void unsigned_integer(std::uint64_t value);
    void floating(double value);
    void text(std::string_view value);
    void binary(std::span<const std::byte> value);
    /// Begins an array. The next `size` values are its elements.
    void array(std::size_t size);
    /// Appends a whole value that is already encoded.
    void value(std::span<const std::byte> cbor);

    const std::vector<std::byte>& bytes() const noexcept { return bytes_; }
    std::vector<std::byte> take() noexcept;

private:
    void head(unsigned major, std::uint64_t argument);

    std::vector<std::byte> bytes_;
};

/// Reads values from CBOR, one after the other. Each call throws codec_error when the next value
/// has another type or is not CBOR: "a string is expected, array was found".
class COHORT_API cbor_reader {
public:
    /// An integer as CBOR stores it: `magnitude`, or -1 - `magnitude` if it is negative.
    struct integer_value {
        bool negative = false;
        std::uint64_t magnitude = 0;

        /// @throws codec_error  always: "300 does not fit into unsigned char"
        [[noreturn]] COHORT_API void refuse(const std::type_info& type) const;
    };

    /// @param bytes  must outlive the reader
    explicit cbor_reader(std::span<const std::byte> bytes) noexcept : rest_(bytes) {}

    /// Reads a null. @return false: the next value is something else, and nothing was read
    bool take_null();
    void null();
    bool boolean();
    integer_value integer();
    /// @throws codec_error  the next integer does not fit: "300 does not fit into unsigned char"
    template <class T>
    T integer_as() {
        const auto found = integer();
        if (found.magnitude > static_cast<std::uint64_t>(std::numeric_limits<T>::max()) ||
            (found.negative && !std::is_signed_v<T>))
            found.refuse(typeid(T));
        return static_cast<T>(found.negative ? ~found.magnitude : found.magnitude);
    }
    /// Reads a floating-point number or an integer.
    double number();
    std::string_view text();
    /// @param wanted  the expected value in the error's text: "bytes"
    std::span<const std::byte> binary(const char* wanted);
    /// Fills `target`. A value of another size is an error as well.
    void binary_into(std::span<std::byte> target, const char* wanted);
    /// Begins an array. @return the number of its elements, at most the number of bytes left
    std::size_t array();
    /// Begins an array of exactly `size` elements.
    void array(std::size_t size);
    /// Reads one whole value of any type. @return its bytes
    std::span<const std::byte> value();
    /// @throws codec_error  bytes are left
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
