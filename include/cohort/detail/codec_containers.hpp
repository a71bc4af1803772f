// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/codec_core.hpp>
#include <cohort/detail/codec_scalars.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace cohort::detail::inline v0_1 {

template <class T>
concept byte_like = std::is_same_v<T, std::byte> || std::is_same_v<T, unsigned char> ||
                    std::is_same_v<T, signed char> || std::is_same_v<T, char>;

/// Numbers whose vectors and arrays are encoded as their bytes, because both sides are the same
/// program on machines of one kind, and because a large vector must not cost more than its copy.
template <class T>
concept raw_element = byte_like<T> || (std::is_arithmetic_v<T> && !std::is_same_v<T, bool> &&
                                       sizeof(T) <= sizeof(std::uint64_t));

template <class T>
inline constexpr const char* raw_name = byte_like<T> ? "bytes" : "an array of numbers";

template <raw_element T, class Allocator>
struct codec<std::vector<T, Allocator>> {
    static void write(encoder& to, const std::vector<T, Allocator>& value) {
        to.binary(std::as_bytes(std::span(value)));
    }
    static std::vector<T, Allocator> read(decoder& from) {
        const auto bytes = from.binary(raw_name<T>);
        if (bytes.size() % sizeof(T) != 0)
            throw codec_error("the bytes of whole numbers are expected");
        std::vector<T, Allocator> value(bytes.size() / sizeof(T));
        if (!bytes.empty())
            std::memcpy(value.data(), bytes.data(), bytes.size());
        return value;
    }
};

template <raw_element T, std::size_t N>
struct codec<std::array<T, N>> {
    static void write(encoder& to, const std::array<T, N>& value) {
        to.binary(std::as_bytes(std::span(value)));
    }
    static std::array<T, N> read(decoder& from) {
        std::array<T, N> value{};
        from.binary_into(std::as_writable_bytes(std::span(value)), raw_name<T>);
        return value;
    }
};

template <class T, std::size_t N>
struct codec<std::array<T, N>> {
    static constexpr bool carries = may_carry<T>;
    static void write(encoder& to, const std::array<T, N>& value) {
        to.array(N);
        for (const auto& element : value)
            codec<T>::write(to, element);
    }
    static std::array<T, N> read(decoder& from) {
        from.array(N);
        return make(from, std::make_index_sequence<N>());
    }

private:
    template <std::size_t... I>
    static std::array<T, N> make([[maybe_unused]] decoder& from, std::index_sequence<I...>) {
        if constexpr (std::is_default_constructible_v<T> && std::is_move_assignable_v<T>) {
            std::array<T, N> value{};
            for (auto& element : value)
                element = codec<T>::read(from);
            return value;
        } else {
            return {{(static_cast<void>(I), codec<T>::read(from))...}};
        }
    }
};

// read() uses braces, because their elements are evaluated from left to right.
template <class... Ts>
struct codec<std::tuple<Ts...>> {
    static constexpr bool carries = (may_carry<Ts> || ...);
    static void write(encoder& to, const std::tuple<Ts...>& value) {
        to.array(sizeof...(Ts));
        std::apply([&to](const auto&... each) { (codec<Ts>::write(to, each), ...); }, value);
    }
    static std::tuple<Ts...> read(decoder& from) {
        from.array(sizeof...(Ts));
        return std::tuple<Ts...>{codec<Ts>::read(from)...};
    }
};

template <class First, class Second>
struct codec<std::pair<First, Second>> {
    static constexpr bool carries = may_carry<First> || may_carry<Second>;
    static void write(encoder& to, const std::pair<First, Second>& value) {
        to.array(2);
        codec<First>::write(to, value.first);
        codec<Second>::write(to, value.second);
    }
    static std::pair<First, Second> read(decoder& from) {
        from.array(2);
        return {codec<First>::read(from), codec<Second>::read(from)};
    }
};

/// Containers as arrays of their elements.
template <class Container, class Element>
struct range_codec {
    static constexpr bool carries = may_carry<Element>;
    static void write(encoder& to, const Container& value) {
        to.array(value.size());
        for (const auto& element : value) {
            if constexpr (requires { typename Container::mapped_type; }) {
                to.array(2);  // not through Element, which would copy key and value
                codec<typename Container::key_type>::write(to, element.first);
                codec<typename Container::mapped_type>::write(to, element.second);
            } else {
                codec<Element>::write(to, element);
            }
        }
    }
    static Container read(decoder& from) {
        Container value;
        for (std::size_t left = from.array(); left != 0; --left) {
            if constexpr (requires { value.emplace_back(codec<Element>::read(from)); }) {
                value.emplace_back(codec<Element>::read(from));
            } else if constexpr (requires { value.emplace(codec<Element>::read(from)); }) {
                value.emplace(codec<Element>::read(from));
            } else {
                value.push_back(codec<Element>::read(from));
            }
        }
        return value;
    }
};

template <class T, class A>
struct codec<std::vector<T, A>> : range_codec<std::vector<T, A>, T> {};
template <class T, class A>
struct codec<std::deque<T, A>> : range_codec<std::deque<T, A>, T> {};
template <class T, class A>
struct codec<std::list<T, A>> : range_codec<std::list<T, A>, T> {};
template <class T, class C, class A>
struct codec<std::set<T, C, A>> : range_codec<std::set<T, C, A>, T> {};
template <class T, class C, class A>
struct codec<std::multiset<T, C, A>> : range_codec<std::multiset<T, C, A>, T> {};
template <class T, class H, class E, class A>
struct codec<std::unordered_set<T, H, E, A>> : range_codec<std::unordered_set<T, H, E, A>, T> {};
template <class T, class H, class E, class A>
struct codec<std::unordered_multiset<T, H, E, A>>
    : range_codec<std::unordered_multiset<T, H, E, A>, T> {};
template <class C, class Tr, class A>
struct codec<std::basic_string<C, Tr, A>> : range_codec<std::basic_string<C, Tr, A>, C> {};

/// Maps as arrays of pairs, for any type of key.
template <class K, class V, class C, class A>
struct codec<std::map<K, V, C, A>> : range_codec<std::map<K, V, C, A>, std::pair<K, V>> {};
template <class K, class V, class C, class A>
struct codec<std::multimap<K, V, C, A>> : range_codec<std::multimap<K, V, C, A>, std::pair<K, V>> {
};
template <class K, class V, class H, class E, class A>
struct codec<std::unordered_map<K, V, H, E, A>>
    : range_codec<std::unordered_map<K, V, H, E, A>, std::pair<K, V>> {};
template <class K, class V, class H, class E, class A>
struct codec<std::unordered_multimap<K, V, H, E, A>>
    : range_codec<std::unordered_multimap<K, V, H, E, A>, std::pair<K, V>> {};

}  // namespace cohort::detail::inline v0_1
