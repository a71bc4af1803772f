// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/codec_core.hpp>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace cohort::detail::inline v0_1 {

template <>
struct codec<bool> {
    static void write(encoder& to, bool value) { to.boolean(value); }
    static bool read(decoder& from) { return from.boolean(); }
};

template <class T>
requires(std::is_integral_v<T> && !std::is_same_v<T, bool> &&
         sizeof(T) <= sizeof(std::uint64_t)) struct codec<T> {
    static void write(encoder& to, T value) {
        if constexpr (std::is_signed_v<T>)
            to.integer(static_cast<std::int64_t>(value));
        else
            to.unsigned_integer(static_cast<std::uint64_t>(value));
    }
    static T read(decoder& from) { return from.integer_as<T>(); }
};

template <class T>
requires(std::is_floating_point_v<T> && sizeof(T) <= sizeof(double)) struct codec<T> {
    static void write(encoder& to, T value) { to.floating(static_cast<double>(value)); }
    static T read(decoder& from) { return static_cast<T>(from.number()); }
};

/// A long double is encoded as its bytes, because both sides are the same program.
template <>
struct codec<long double> {
    static void write(encoder& to, long double value) {
        to.binary(std::as_bytes(std::span(&value, 1)));
    }
    static long double read(decoder& from) {
        long double value = 0;
        from.binary_into(std::as_writable_bytes(std::span(&value, 1)), "a long double");
        return value;
    }
};

template <class T>
requires std::is_enum_v<T>
struct codec<T> {
    using number = std::underlying_type_t<T>;
    static void write(encoder& to, T value) {
        codec<number>::write(to, static_cast<number>(value));
    }
    static T read(decoder& from) { return static_cast<T>(codec<number>::read(from)); }
};

/// A string is encoded as a CBOR text, whose bytes need not be UTF-8.
template <class Traits, class Allocator>
struct codec<std::basic_string<char, Traits, Allocator>> {
    using text = std::basic_string<char, Traits, Allocator>;
    static void write(encoder& to, const text& value) {
        to.text(std::string_view(value.data(), value.size()));
    }
    static text read(decoder& from) {
        const auto found = from.text();
        return text(found.data(), found.size());
    }
};

template <>
struct codec<std::filesystem::path> {
    static void write(encoder& to, const std::filesystem::path& value) { to.text(value.native()); }
    static std::filesystem::path read(decoder& from) { return std::string(from.text()); }
};

template <class Rep, class Period>
struct codec<std::chrono::duration<Rep, Period>> {
    using duration = std::chrono::duration<Rep, Period>;
    static void write(encoder& to, const duration& value) { codec<Rep>::write(to, value.count()); }
    static duration read(decoder& from) { return duration(codec<Rep>::read(from)); }
};

template <class Clock, class Duration>
struct codec<std::chrono::time_point<Clock, Duration>> {
    using point = std::chrono::time_point<Clock, Duration>;
    static void write(encoder& to, const point& value) {
        codec<Duration>::write(to, value.time_since_epoch());
    }
    static point read(decoder& from) { return point(codec<Duration>::read(from)); }
};

template <>
struct codec<std::monostate> {
    static void write(encoder& to, std::monostate) { to.null(); }
    static std::monostate read(decoder& from) {
        from.null();
        return {};
    }
};

/// Null, or an array of one, so that an optional of an optional keeps its meaning.
template <class T>
struct codec<std::optional<T>> {
    static constexpr bool carries = may_carry<T>;
    static void write(encoder& to, const std::optional<T>& value) {
        if (!value)
            return to.null();
        to.array(1);
        codec<T>::write(to, *value);
    }
    static std::optional<T> read(decoder& from) {
        if (from.take_null())
            return std::nullopt;
        from.array(1);
        return std::optional<T>(std::in_place, codec<T>::read(from));
    }
};

/// A variant is encoded as an array of two: the index of the alternative, and its value.
template <class... Ts>
struct codec<std::variant<Ts...>> {
    using variant = std::variant<Ts...>;
    static constexpr bool carries = (may_carry<Ts> || ...);

    static void write(encoder& to, const variant& value) {
        if (value.valueless_by_exception())
            throw codec_error("the variant holds no value");
        to.array(2);
        to.unsigned_integer(value.index());
        std::visit([&to]<class T>(const T& v) { codec<T>::write(to, v); }, value);
    }
    static variant read(decoder& from) {
        from.array(2);
        const auto index = codec<std::size_t>::read(from);
        if (index >= sizeof...(Ts)) {
            throw codec_error("alternative " + std::to_string(index) + " of a variant of " +
                              std::to_string(sizeof...(Ts)));
        }
        return alternative(index, from, std::index_sequence_for<Ts...>());
    }

private:
    template <std::size_t I>
    static variant make(decoder& from) {
        return variant(std::in_place_index<I>,
                       codec<std::variant_alternative_t<I, variant>>::read(from));
    }
    template <std::size_t... I>
    static variant alternative(std::size_t index, decoder& from, std::index_sequence<I...>) {
        using maker = variant (*)(decoder&);
        static constexpr maker makers[] = {&codec::template make<I>...};
        return makers[index](from);
    }
};

}  // namespace cohort::detail::inline v0_1
