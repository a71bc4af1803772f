// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/codec_containers.hpp>
#include <cohort/detail/codec_core.hpp>
#include <cohort/detail/codec_scalars.hpp>
#include <cohort/detail/registration.hpp>

#include <cstddef>
#include <exception>
#include <span>
#include <string>
#include <tuple>
#include <typeinfo>
#include <utility>
#include <vector>

namespace cohort::detail::inline v0_1 {

[[noreturn]] inline void rethrow_for_argument(std::size_t position, std::size_t count,
                                              const std::type_info& type, const char* done,
                                              const char* why) {
    throw codec_error("argument " + std::to_string(position) + " of " + std::to_string(count) +
                      " (" + type_name(type) + ") could not be " + done + ": " + why);
}

template <class T>
json encode_argument(const T& value, std::size_t position, std::size_t count) {
    try {
        return codec<T>::to_json(value);
    } catch (const std::exception& e) {
        rethrow_for_argument(position, count, typeid(T), "encoded", e.what());
    }
}

template <class T>
T decode_argument(const json& j, std::size_t position, std::size_t count) {
    try {
        return codec<T>::from_json(j);
    } catch (const std::exception& e) {
        rethrow_for_argument(position, count, typeid(T), "decoded", e.what());
    }
}

/// The arguments of a function as one CBOR array. @throws codec_error  names the argument
template <class... Ts>
std::vector<std::byte> encode_arguments(const std::tuple<Ts...>& arguments) {
    json all = json::array();
    std::apply(
        [&](const Ts&... each) {
            [[maybe_unused]] std::size_t position = 0;
            (all.push_back(encode_argument(each, ++position, sizeof...(Ts))), ...);
        },
        arguments);
    return to_cbor(all);
}

template <class Tuple, std::size_t... I>
Tuple decode_each([[maybe_unused]] const json::array_t& all, std::index_sequence<I...>) {
    return Tuple{decode_argument<std::tuple_element_t<I, Tuple>>(all[I], I + 1, sizeof...(I))...};
}

/// @param bytes  what encode_arguments made; none at all stands for no arguments
/// @throws codec_error  names the argument
template <class Tuple>
Tuple decode_arguments(std::span<const std::byte> bytes) {
    constexpr std::size_t count = std::tuple_size_v<Tuple>;
    json all = json::array();
    try {
        if (!bytes.empty())
            all = parse_cbor(bytes);
        array_of(all, count);
    } catch (const codec_error& e) {
        throw codec_error(std::string("the arguments could not be decoded: ") + e.what());
    }
    return decode_each<Tuple>(array_of(all), std::make_index_sequence<count>());
}

template <class T>
function_result encode_result(const T& value) {
    try {
        return {typeid(T).name(), to_cbor(codec<T>::to_json(value))};
    } catch (const std::exception& e) {
        throw codec_error("the result (" + type_name(typeid(T)) +
                          ") could not be encoded: " + e.what());
    }
}

}  // namespace cohort::detail::inline v0_1
