// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/cbor.hpp>
#include <cohort/detail/cbor_events.hpp>
#include <cohort/detail/encoder.hpp>
#include <cohort/detail/type_name.hpp>
#include <cohort/errors.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace cohort::detail::inline v0_1 {

using json = nlohmann::json;

template <class T>
inline constexpr bool is_pointer =
    std::is_pointer_v<T> || std::is_member_pointer_v<T> || std::is_null_pointer_v<T>;
template <class T>
inline constexpr bool is_view = std::ranges::enable_view<T>;

/// Types that nlohmann-json converts, by itself or by the user's to_json and from_json (or
/// adl_serializer).
template <class T>
concept json_writable =
    requires(json& j, const T& value) { nlohmann::adl_serializer<T>::to_json(j, value); };
template <class T>
concept json_readable = requires(const json& j, T& value) {
    nlohmann::adl_serializer<T>::from_json(j, value);
} || requires(const json& j) { nlohmann::adl_serializer<T>::from_json(j); };
template <class T>
inline constexpr bool is_json = std::is_same_v<T, json>;

/// Builds a JSON value from the calls of read_cbor().
template <class Json>
class json_builder final : public cbor_events {
public:
    void null() override { place(Json(nullptr)); }
    void boolean(bool value) override { place(Json(value)); }
    void integer(std::int64_t value) override { place(Json(value)); }
    void unsigned_integer(std::uint64_t value) override { place(Json(value)); }
    void floating(double value) override { place(Json(value)); }
    void string(std::string&& value) override { place(Json(std::move(value))); }
    void binary(std::vector<std::uint8_t>&& value) override {
        place(Json::binary(std::move(value)));
    }
    void start_object() override { open_.push_back(place(Json::object())); }
    void start_array() override { open_.push_back(place(Json::array())); }
    void key(std::string&& name) override { key_ = std::move(name); }
    void end() override { open_.pop_back(); }

    Json take_root() { return std::move(root_); }

private:
    Json* place(Json&& value) {
        if (open_.empty())
            return &(root_ = std::move(value));
        Json& parent = *open_.back();
        if (parent.is_array())
            return &parent.emplace_back(std::move(value));
        return &(parent[key_] = std::move(value));
    }

    Json root_;
    std::vector<Json*> open_;  // a parent does not move while one of its children is open
    std::string key_;
};

/// A template, so that nlohmann-json is compiled only where a type needs it.
/// @throws codec_error  `bytes` is not one whole CBOR value. Nothing else is thrown but bad_alloc.
template <class Json = json>
Json parse_cbor(std::span<const std::byte> bytes) {
    json_builder<Json> builder;
    read_cbor(bytes, builder);
    return builder.take_root();
}

/// Writes and reads values of T as CBOR. This primary template converts the user's own types by way
/// of JSON. codec_scalars.hpp and codec_containers.hpp specialise it for the standard's types.
/// `read` throws for a value that is not a T.
template <class T>
struct codec {
    static constexpr bool carries = true;  // a user's own type may hold descriptors anywhere

    static_assert(!is_pointer<T>,
                  "cohort: a pointer means nothing in another process: pass the value itself.");
    static_assert(!is_view<T>,
                  "cohort: a view (std::string_view, std::span) points into this process: "
                  "pass a std::string or a std::vector.");
    static_assert(
        is_pointer<T> || is_view<T> || is_json<T> || (json_writable<T> && json_readable<T>),
        "cohort: this type cannot cross to another process: give it to_json and from_json "
        "(nlohmann-json, for example NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE). In a queue a trivially "
        "copyable type may also cross as its bytes are: specialise cohort::plain<T> as true.");

    static void write(encoder& to, const T& value) {
        const current_scope travels(current_encoder(), to);
        const std::vector<std::uint8_t> cbor = json::to_cbor(json(value));
        to.value(std::as_bytes(std::span(cbor)));
    }
    static T read(decoder& from) {
        const current_scope arrives(current_decoder(), from);
        return parse_cbor(from.value()).template get<T>();
    }
};

/// Whether a value of this type can hold descriptors, which then travel beside it.
template <class T>
inline constexpr bool may_carry = requires { requires codec<T>::carries; };

}  // namespace cohort::detail::inline v0_1
