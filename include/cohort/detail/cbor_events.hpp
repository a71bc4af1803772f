// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

// Any CBOR is parsed inside the library, because a parser in a header would make every program
// compile nlohmann-json's readers of all binary formats.
namespace cohort::detail::inline v0_1 {

/// Receives the parts of a CBOR value in their order, like a SAX handler.
class COHORT_API cbor_events {
public:
    virtual ~cbor_events();
    virtual void null() = 0;
    virtual void boolean(bool value) = 0;
    virtual void integer(std::int64_t value) = 0;
    virtual void unsigned_integer(std::uint64_t value) = 0;
    virtual void floating(double value) = 0;
    virtual void string(std::string&& value) = 0;
    virtual void binary(std::vector<std::uint8_t>&& value) = 0;
    virtual void start_array() = 0;
    virtual void start_object() = 0;
    virtual void key(std::string&& name) = 0;
    virtual void end() = 0;  // ends the array or object that was started last
};

/// How many arrays and objects may be open at once: few enough for any stack.
inline constexpr std::size_t cbor_depth_limit = 500;

/// Parses any value by nlohmann-json and passes it on as calls, so that the program can build a
/// value of its own nlohmann-json, whatever its version is.
/// @throws codec_error  for anything that is not one whole CBOR value
COHORT_API void read_cbor(std::span<const std::byte> bytes, cbor_events& to);

}  // namespace cohort::detail::inline v0_1
