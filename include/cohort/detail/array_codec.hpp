// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/array_base.hpp>
#include <cohort/detail/codec_core.hpp>
#include <cohort/detail/encoder.hpp>
#include <cohort/detail/shareable.hpp>
#include <cohort/errors.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

// How shared arrays cross: as a description in the value, and the memory's descriptor beside it.
namespace cohort {

template <class T>
class shared_array;
template <class T>
class shared_value;

namespace detail::inline v0_1 {

template <class T>
inline constexpr memory_access access_of =
    std::is_const_v<T> ? memory_access::read_only : memory_access::read_write;

/// Makes public handles of inner ones, and gives the inner one of a public handle.
struct array_access {
    template <class T>
    static const array_base& base(const shared_array<T>& array) noexcept {
        return array.base_;
    }
    template <class T>
    static const shared_array<T>& array(const shared_value<T>& value) noexcept {
        return value.array_;
    }
    template <class T>
    static shared_array<T> make_array(array_base base) noexcept {
        return shared_array<T>(std::move(base));
    }
    template <class T>
    static shared_value<T> make_value(shared_array<T> array) noexcept {
        return shared_value<T>(std::move(array));
    }
};

template <class T>
struct codec<shared_array<T>> {
    static constexpr bool carries = true;
    static void write(encoder& to, const shared_array<T>& value) {
        array_access::base(value).write(to, dtype_of<T>());
    }
    static shared_array<T> read(decoder& from) {
        return array_access::make_array<T>(
            array_base::read(from, sizeof(T), alignof(T), dtype_of<T>(), access_of<T>));
    }
};

/// A shared_value is encoded as the array of one element that it is.
template <class T>
struct codec<shared_value<T>> {
    static constexpr bool carries = true;
    static void write(encoder& to, const shared_value<T>& value) {
        codec<shared_array<T>>::write(to, array_access::array(value));
    }
    static shared_value<T> read(decoder& from) {
        auto array = codec<shared_array<T>>::read(from);
        if (array.size() != 1)
            throw codec_error("a shared value is expected, an array was found");
        return array_access::make_value(std::move(array));
    }
};

/// Writes a handle inside a user's own type, whose to_json is being called: as the CBOR of its
/// codec, because JSON can't hold a descriptor.
template <class Json, class Handle>
void handle_to_json(Json& to, const Handle& handle) {
    encoder* const whole = current_encoder();
    if (whole == nullptr)
        throw codec_error("shared memory travels only to processes of this library: as an "
                          "argument, or inside one");
    encoder part(*whole);
    codec<Handle>::write(part, handle);
    const auto cbor = part.take();
    const auto* const first = reinterpret_cast<const std::uint8_t*>(cbor.data());
    to = Json::binary(std::vector<std::uint8_t>(first, first + cbor.size()));
}

template <class Json, class Handle>
void handle_from_json(const Json& from, Handle& handle) {
    const decoder* const whole = current_decoder();
    if (whole == nullptr)
        throw codec_error("shared memory comes only from processes of this library");
    const auto& cbor = from.get_binary();
    decoder part(std::as_bytes(std::span<const std::uint8_t>(cbor)), whole->attachments());
    handle = codec<Handle>::read(part);
    part.end();
}

}  // namespace detail::inline v0_1

/// For the user's own types that contain shared arrays and travel by nlohmann-json. More special
/// than nlohmann-json's own conversion of whatever has begin() and end().
template <class Json, class T>
void to_json(Json& to, const shared_array<T>& array) {
    detail::handle_to_json(to, array);
}
/// Reads what to_json wrote.
template <class Json, class T>
void from_json(const Json& from, shared_array<T>& array) {
    detail::handle_from_json(from, array);
}
/// For the user's own types that contain shared values.
template <class Json, class T>
void to_json(Json& to, const shared_value<T>& value) {
    detail::handle_to_json(to, value);
}
/// Reads what to_json wrote.
template <class Json, class T>
void from_json(const Json& from, shared_value<T>& value) {
    detail::handle_from_json(from, value);
}

/// For where_it_runs::share.
template <class T>
detail::shared_item item_to_share(const shared_array<T>& array) {
    return detail::array_access::base(array).item(sizeof(T), detail::dtype_of<T>());
}
/// For where_it_runs::share.
template <class T>
detail::shared_item item_to_share(const shared_value<T>& value) {
    return item_to_share(detail::array_access::array(value));
}

}  // namespace cohort
