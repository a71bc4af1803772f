// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/codec_core.hpp>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <variant>

namespace cohort::detail::inline v0_1 {

template <>
struct codec<bool> {
    static json to_json(bool value) { return json(value); }
    static bool from_json(const json& j) {
        if (!j.is_boolean())
            refuse("a boolean", j);
        return j.get<bool>();
    }
};

template <class T>
requires(std::is_integral_v<T> && !std::is_same_v<T, bool> &&
         sizeof(T) <= sizeof(std::uint64_t)) struct codec<T> {
    static json to_json(T value) {
        if constexpr (std::is_signed_v<T>)
            return json(static_cast<std::int64_t>(value));
        else
            return json(static_cast<std::uint64_t>(value));
    }
    static T from_json(const json& j) {
        using limits = std::numeric_limits<T>;
        if (!j.is_number_integer())
            refuse("an integer", j);
        if (j.is_number_unsigned() || j.get<std::int64_t>() >= 0) {
            const auto value = j.get<std::uint64_t>();
            if (value <= static_cast<std::uint64_t>(limits::max()))
                return static_cast<T>(value);
        } else if constexpr (std::is_signed_v<T>) {
            const auto value = j.get<std::int64_t>();
            if (value >= static_cast<std::int64_t>(limits::min()))
                return static_cast<T>(value);
        }
        throw codec_error(j.dump() + " does not fit into " + type_name(typeid(T)));
    }
};

template <class T>
requires(std::is_floating_point_v<T> && sizeof(T) <= sizeof(double)) struct codec<T> {
    static json to_json(T value) { return json(static_cast<double>(value)); }
    static T from_json(const json& j) {
        if (!j.is_number())
            refuse("a number", j);
        return static_cast<T>(j.get<double>());
    }
};

/// As its bytes: both sides are the same program.
template <>
struct codec<long double> {
    static json to_json(long double value) {
        json::binary_t::container_type bytes(sizeof value);
        std::memcpy(bytes.data(), &value, sizeof value);
        return json::binary(std::move(bytes));
    }
    static long double from_json(const json& j) {
        long double value = 0;
        if (!j.is_binary() || j.get_binary().size() != sizeof value)
            refuse("a long double", j);
        std::memcpy(&value, j.get_binary().data(), sizeof value);
        return value;
    }
};

template <class T>
requires std::is_enum_v<T>
struct codec<T> {
    using number = std::underlying_type_t<T>;
    static json to_json(T value) { return codec<number>::to_json(static_cast<number>(value)); }
    static T from_json(const json& j) { return static_cast<T>(codec<number>::from_json(j)); }
};

/// Any bytes, also those that are not UTF-8: CBOR's text strings are not checked by nlohmann-json.
template <class Traits, class Allocator>
struct codec<std::basic_string<char, Traits, Allocator>> {
    using text = std::basic_string<char, Traits, Allocator>;
    static json to_json(const text& value) { return json(std::string(value.data(), value.size())); }
    static text from_json(const json& j) {
        if (!j.is_string())
            refuse("a string", j);
        const auto& value = j.get_ref<const std::string&>();
        return text(value.data(), value.size());
    }
};

template <>
struct codec<std::filesystem::path> {
    static json to_json(const std::filesystem::path& value) { return json(value.native()); }
    static std::filesystem::path from_json(const json& j) {
        return codec<std::string>::from_json(j);
    }
};

template <class Rep, class Period>
struct codec<std::chrono::duration<Rep, Period>> {
    using duration = std::chrono::duration<Rep, Period>;
    static json to_json(const duration& value) { return codec<Rep>::to_json(value.count()); }
    static duration from_json(const json& j) { return duration(codec<Rep>::from_json(j)); }
};

template <class Clock, class Duration>
struct codec<std::chrono::time_point<Clock, Duration>> {
    using point = std::chrono::time_point<Clock, Duration>;
    static json to_json(const point& value) {
        return codec<Duration>::to_json(value.time_since_epoch());
    }
    static point from_json(const json& j) { return point(codec<Duration>::from_json(j)); }
};

template <>
struct codec<std::monostate> {
    static json to_json(std::monostate) { return json(nullptr); }
    static std::monostate from_json(const json& j) {
        if (!j.is_null())
            refuse("null", j);
        return {};
    }
};

/// null, or an array of one: so an optional of an optional keeps its meaning.
template <class T>
struct codec<std::optional<T>> {
    static json to_json(const std::optional<T>& value) {
        if (!value)
            return json(nullptr);
        json one = json::array();
        one.push_back(codec<T>::to_json(*value));
        return one;
    }
    static std::optional<T> from_json(const json& j) {
        if (j.is_null())
            return std::nullopt;
        return std::optional<T>(std::in_place, codec<T>::from_json(array_of(j, 1)[0]));
    }
};

/// The index of the alternative, and its value.
template <class... Ts>
struct codec<std::variant<Ts...>> {
    using variant = std::variant<Ts...>;

    static json to_json(const variant& value) {
        if (value.valueless_by_exception())
            throw codec_error("the variant holds no value");
        json both = json::array();
        both.push_back(value.index());
        both.push_back(std::visit([]<class T>(const T& v) { return codec<T>::to_json(v); }, value));
        return both;
    }
    static variant from_json(const json& j) {
        const auto& both = array_of(j, 2);
        const auto index = codec<std::size_t>::from_json(both[0]);
        if (index >= sizeof...(Ts)) {
            throw codec_error("alternative " + std::to_string(index) + " of a variant of " +
                              std::to_string(sizeof...(Ts)));
        }
        return alternative(index, both[1], std::index_sequence_for<Ts...>());
    }

private:
    template <std::size_t I>
    static variant make(const json& j) {
        return variant(std::in_place_index<I>,
                       codec<std::variant_alternative_t<I, variant>>::from_json(j));
    }
    template <std::size_t... I>
    static variant alternative(std::size_t index, const json& j, std::index_sequence<I...>) {
        using maker = variant (*)(const json&);
        static constexpr maker makers[] = {&codec::template make<I>...};
        return makers[index](j);
    }
};

}  // namespace cohort::detail::inline v0_1
