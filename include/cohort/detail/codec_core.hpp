// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/type_name.hpp>
#include <cohort/errors.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
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

/// Types that nlohmann-json knows, by itself or by the user's to_json and from_json (or
/// adl_serializer).
template <class T>
concept json_writable = requires(json& j, const T& value) {
    nlohmann::adl_serializer<T>::to_json(j, value);
};
template <class T>
concept json_readable = requires(const json& j, T& value) {
    nlohmann::adl_serializer<T>::from_json(j, value);
}
|| requires(const json& j) { nlohmann::adl_serializer<T>::from_json(j); };
template <class T>
inline constexpr bool is_json = std::is_same_v<T, json>;

/// To and from JSON values, which travel as CBOR. This is the case of the user's own types; the
/// standard's are specialised in codec_scalars.hpp and codec_containers.hpp. from_json throws for
/// values that are no T.
template <class T>
struct codec {
    static_assert(!is_pointer<T>,
                  "cohort: a pointer means nothing in another process: pass the value itself.");
    static_assert(!is_view<T>,
                  "cohort: a view (std::string_view, std::span) points into this process: "
                  "pass a std::string or a std::vector.");
    static_assert(
        is_pointer<T> || is_view<T> || is_json<T> || (json_writable<T> && json_readable<T>),
        "cohort: this type cannot cross to another process: give it to_json and from_json "
        "(nlohmann-json, for example NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE).");

    static json to_json(const T& value) { return json(value); }
    static T from_json(const json& j) { return j.get<T>(); }
};

[[noreturn]] inline void refuse(const char* wanted, const json& found) {
    throw codec_error(std::string(wanted) + " is expected, " + found.type_name() + " was found");
}

/// The elements of an array of this size.
inline const json::array_t& array_of(const json& j, std::size_t size) {
    if (!j.is_array())
        refuse("an array", j);
    const auto& elements = j.get_ref<const json::array_t&>();
    if (elements.size() != size) {
        throw codec_error("an array of " + std::to_string(size) + " is expected, one of " +
                          std::to_string(elements.size()) + " was found");
    }
    return elements;
}

inline const json::array_t& array_of(const json& j) {
    if (!j.is_array())
        refuse("an array", j);
    return j.get_ref<const json::array_t&>();
}

/// Builds a JSON value from the events of a parser, no deeper than a stack can take.
class bounded_builder final : public nlohmann::json_sax<json> {
public:
    static constexpr std::size_t depth_limit = 500;

    bool null() override { return add(nullptr); }
    bool boolean(bool value) override { return add(value); }
    bool number_integer(number_integer_t value) override { return add(value); }
    bool number_unsigned(number_unsigned_t value) override { return add(value); }
    bool number_float(number_float_t value, const string_t&) override { return add(value); }
    bool string(string_t& value) override { return add(std::move(value)); }
    bool binary(binary_t& value) override { return add(std::move(value)); }
    bool start_object(std::size_t) override { return open(json::object()); }
    bool start_array(std::size_t) override { return open(json::array()); }
    bool end_object() override { return close(); }
    bool end_array() override { return close(); }
    bool key(string_t& name) override {
        key_ = std::move(name);
        return true;
    }
    bool parse_error(std::size_t, const std::string&,
                     const nlohmann::detail::exception& e) override {
        problem_ = e.what();
        return false;
    }

    json take_root() { return std::move(root_); }
    const std::string& problem() const noexcept { return problem_; }

private:
    template <class Value>
    bool add(Value&& value) {
        place(json(std::forward<Value>(value)));
        return true;
    }
    bool open(json&& container) {
        if (open_.size() == depth_limit) {
            problem_ = "nested more than " + std::to_string(depth_limit) + " deep";
            return false;
        }
        open_.push_back(place(std::move(container)));
        return true;
    }
    bool close() {
        open_.pop_back();
        return true;
    }
    json* place(json&& value) {
        if (open_.empty())
            return &(root_ = std::move(value));
        json& parent = *open_.back();
        if (parent.is_array())
            return &parent.emplace_back(std::move(value));
        return &(parent[key_] = std::move(value));
    }

    json root_;
    std::vector<json*> open_;  // a parent does not move while one of its children is open
    std::string key_;
    std::string problem_;
};

/// @throws codec_error  for anything that is not one whole CBOR value, and nothing else but
/// bad_alloc
inline json parse_cbor(std::span<const std::byte> bytes) {
    bounded_builder builder;
    const auto* first = reinterpret_cast<const char*>(bytes.data());
    bool whole = false;
    std::string thrown;
    try {
        whole = json::sax_parse(first, first + bytes.size(), &builder, json::input_format_t::cbor,
                                true);
    } catch (const nlohmann::json::exception& e) {
        thrown = e.what();
    }
    if (!whole)
        throw codec_error("not valid CBOR: " + (thrown.empty() ? builder.problem() : thrown));
    return builder.take_root();
}

inline std::vector<std::byte> to_cbor(const json& value) {
    const std::vector<std::uint8_t> cbor = json::to_cbor(value);
    std::vector<std::byte> bytes(cbor.size());
    if (!cbor.empty())
        std::memcpy(bytes.data(), cbor.data(), cbor.size());
    return bytes;
}

}  // namespace cohort::detail::inline v0_1
