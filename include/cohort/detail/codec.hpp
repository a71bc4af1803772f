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

template <class T>
encoded_value encode_value(const T& value) {
    encoder to;
    codec<T>::write(to, value);
    return to.finish();
}

template <class T>
T decode_value(std::span<const std::byte> cbor, std::span<const attachment> attachments = {}) {
    decoder from(cbor, attachments);
    T value = codec<T>::read(from);
    from.end();
    return value;
}

inline std::string argument_name(std::size_t position, std::size_t count,
                                 const std::type_info& type) {
    return "argument " + std::to_string(position) + " of " + std::to_string(count) + " (" +
           type_name(type) + ")";
}

[[noreturn]] inline void rethrow_for_argument(std::size_t position, std::size_t count,
                                              const std::type_info& type, const char* done,
                                              const char* why) {
    throw codec_error(argument_name(position, count, type) + " could not be " + done + ": " + why);
}

template <class T>
void encode_argument(encoder& to, const T& value, std::size_t position, std::size_t count) {
    try {
        codec<T>::write(to, value);
    } catch (const given_up_end&) {
        throw;
    } catch (const gone_end&) {
        throw gone_end(argument_name(position, count, typeid(T)));
    } catch (const std::exception& e) {
        rethrow_for_argument(position, count, typeid(T), "encoded", e.what());
    }
}

template <class T>
T decode_argument(decoder& from, std::size_t position, std::size_t count) {
    try {
        return codec<T>::read(from);
    } catch (const std::exception& e) {
        rethrow_for_argument(position, count, typeid(T), "decoded", e.what());
    }
}

/// The arguments of a function as one CBOR array, and the descriptors that travel with them.
/// @throws codec_error, sharing_error  names the argument
template <class... Ts>
encoded_value encode_arguments(const std::tuple<Ts...>& arguments) {
    encoder to;
    to.array(sizeof...(Ts));
    std::apply(
        [&](const Ts&... each) {
            [[maybe_unused]] std::size_t position = 0;
            (encode_argument(to, each, ++position, sizeof...(Ts)), ...);
        },
        arguments);
    return to.finish();
}

/// A reader at the first argument. Checks that `bytes` is one whole array of `count` arguments.
inline decoder arguments_in(std::span<const std::byte> bytes,
                            std::span<const attachment> attachments, std::size_t count) {
    static constexpr std::byte none[] = {std::byte{0x80}};  // an array of 0
    if (bytes.empty())
        bytes = none;
    try {
        cbor_reader whole(bytes);
        whole.value();
        whole.end();
        decoder from(bytes, attachments);
        if (const auto found = from.array(); found != count)
            throw codec_error(std::to_string(count) + " are expected, " + std::to_string(found) +
                              " were sent");
        return from;
    } catch (const codec_error& e) {
        throw codec_error(std::string("the arguments could not be decoded: ") + e.what());
    }
}

template <class Tuple, std::size_t... I>
Tuple decode_each([[maybe_unused]] decoder& from, std::index_sequence<I...>) {
    return Tuple{decode_argument<std::tuple_element_t<I, Tuple>>(from, I + 1, sizeof...(I))...};
}

/// @param bytes        the result of encode_arguments; empty: there are no arguments
/// @param attachments  the descriptors that came with them; closed unless an argument takes them
/// @throws codec_error  names the argument
template <class Tuple>
Tuple decode_arguments(std::span<const std::byte> bytes, std::vector<attachment> attachments = {}) {
    constexpr std::size_t count = std::tuple_size_v<Tuple>;
    decoder from = arguments_in(bytes, attachments, count);
    return decode_each<Tuple>(from, std::make_index_sequence<count>());
}

template <class T>
function_result encode_result(const T& value) {
    try {
        encoded_value encoded = encode_value(value);
        return {typeid(T).name(), std::move(encoded.cbor), std::move(encoded.attachments)};
    } catch (const std::exception& e) {
        throw codec_error("the result (" + type_name(typeid(T)) +
                          ") could not be encoded: " + e.what());
    }
}

}  // namespace cohort::detail::inline v0_1
