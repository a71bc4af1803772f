// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/codec_core.hpp>
#include <cohort/detail/codec_scalars.hpp>

#include <array>
#include <cstddef>
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

inline json binary_json(const void* data, std::size_t size) {
    json::binary_t::container_type bytes(size);
    if (size != 0)
        std::memcpy(bytes.data(), data, size);
    return json::binary(std::move(bytes));
}

inline const json::binary_t& binary_of(const json& j) {
    if (!j.is_binary())
        refuse("bytes", j);
    return j.get_binary();
}

template <byte_like T, class Allocator>
struct codec<std::vector<T, Allocator>> {
    static json to_json(const std::vector<T, Allocator>& value) {
        return binary_json(value.data(), value.size());
    }
    static std::vector<T, Allocator> from_json(const json& j) {
        const auto& bytes = binary_of(j);
        std::vector<T, Allocator> value(bytes.size());
        if (!bytes.empty())
            std::memcpy(value.data(), bytes.data(), bytes.size());
        return value;
    }
};

template <byte_like T, std::size_t N>
struct codec<std::array<T, N>> {
    static json to_json(const std::array<T, N>& value) { return binary_json(value.data(), N); }
    static std::array<T, N> from_json(const json& j) {
        const auto& bytes = binary_of(j);
        if (bytes.size() != N) {
            throw codec_error(std::to_string(N) + " bytes are expected, " +
                              std::to_string(bytes.size()) + " were found");
        }
        std::array<T, N> value{};
        if constexpr (N != 0)
            std::memcpy(value.data(), bytes.data(), N);
        return value;
    }
};

template <class T, std::size_t N>
struct codec<std::array<T, N>> {
    static json to_json(const std::array<T, N>& value) {
        json all = json::array();
        for (const auto& element : value)
            all.push_back(codec<T>::to_json(element));
        return all;
    }
    static std::array<T, N> from_json(const json& j) {
        return make(array_of(j, N), std::make_index_sequence<N>());
    }

private:
    template <std::size_t... I>
    static std::array<T, N> make([[maybe_unused]] const json::array_t& all,
                                 std::index_sequence<I...>) {
        if constexpr (std::is_default_constructible_v<T> && std::is_move_assignable_v<T>) {
            std::array<T, N> value{};
            for (std::size_t i = 0; i < N; ++i)
                value[i] = codec<T>::from_json(all[i]);
            return value;
        } else {
            return {{codec<T>::from_json(all[I])...}};
        }
    }
};

template <class... Ts>
struct codec<std::tuple<Ts...>> {
    static json to_json(const std::tuple<Ts...>& value) {
        json all = json::array();
        std::apply([&](const auto&... each) { (all.push_back(codec<Ts>::to_json(each)), ...); },
                   value);
        return all;
    }
    static std::tuple<Ts...> from_json(const json& j) {
        return make(array_of(j, sizeof...(Ts)), std::index_sequence_for<Ts...>());
    }

private:
    template <std::size_t... I>
    static std::tuple<Ts...> make([[maybe_unused]] const json::array_t& all,
                                  std::index_sequence<I...>) {
        return std::tuple<Ts...>{codec<Ts>::from_json(all[I])...};
    }
};

template <class First, class Second>
struct codec<std::pair<First, Second>> {
    static json to_json(const std::pair<First, Second>& value) {
        json both = json::array();
        both.push_back(codec<First>::to_json(value.first));
        both.push_back(codec<Second>::to_json(value.second));
        return both;
    }
    static std::pair<First, Second> from_json(const json& j) {
        const auto& both = array_of(j, 2);
        return {codec<First>::from_json(both[0]), codec<Second>::from_json(both[1])};
    }
};

/// Containers as arrays of their elements; `add` puts a decoded one in.
template <class Container, class Element>
struct range_codec {
    static json to_json(const Container& value) {
        json all = json::array();
        for (const auto& element : value) {
            if constexpr (requires { typename Container::mapped_type; }) {
                json both = json::array();  // not by way of Element, which would copy key and value
                both.push_back(codec<typename Container::key_type>::to_json(element.first));
                both.push_back(codec<typename Container::mapped_type>::to_json(element.second));
                all.push_back(std::move(both));
            } else {
                all.push_back(codec<Element>::to_json(element));
            }
        }
        return all;
    }
    static Container from_json(const json& j) {
        Container value;
        for (const auto& element : array_of(j)) {
            if constexpr (requires { value.emplace_back(codec<Element>::from_json(element)); }) {
                value.emplace_back(codec<Element>::from_json(element));
            } else {
                value.emplace(codec<Element>::from_json(element));
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
struct codec<std::basic_string<C, Tr, A>> : range_codec<std::basic_string<C, Tr, A>, C> {
    using base = range_codec<std::basic_string<C, Tr, A>, C>;
    static std::basic_string<C, Tr, A> from_json(const json& j) {
        std::basic_string<C, Tr, A> value;
        for (const auto& element : array_of(j))
            value.push_back(codec<C>::from_json(element));
        return value;
    }
};

/// Maps as arrays of pairs, whatever the key is.
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
