// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/text/members.hpp"

#include <cohort/error_record.hpp>
#include <cohort/outcome.hpp>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace cohort::protocol {

/// How many calls of a stack are kept: the newest ones.
inline constexpr std::size_t frame_limit = 256;
/// How many threads or processes of a worker are kept.
inline constexpr std::size_t activity_limit = 256;

// In JSON the newest call of a stack is first, because an unwinder meets it first and may be killed
// before it reaches the oldest. In a record the newest call is last, in the order of reading.

/// {"m": module, "b": build-id in hexadecimal, "o": offset}, and for a frame with a name also
/// "f": function, "s": source file, "l": line, "i": true if inlined.
base::json json_of(const std::vector<stack_frame>& frames);
/// The frames in an object's member "frames", without empty ones.
std::vector<stack_frame> frames_at(const base::json& object);

base::json json_of(const crash_record& crash);
/// Empty when the object is no crash, or its signal is not one of the five that a worker's own
/// fault sends.
std::optional<crash_record> crash_in(const base::json& object);

base::json json_of(const std::vector<activity>& activities);
/// The activities in an object's member of that name.
std::vector<activity> activities_at(const base::json& object, const char* name);

/// How many nested errors are kept.
inline constexpr std::size_t nested_limit = 16;
/// The longest text in a nested error, in bytes.
inline constexpr std::size_t nested_text_limit = std::size_t{1} << 15;
/// The longest value that is kept, in bytes.
inline constexpr std::size_t value_limit = std::size_t{1} << 16;
/// The longest name of a type; an exception of a type with a longer name can't be thrown again.
inline constexpr std::size_t type_limit = base::name_limit;

/// What is left out of a record that must be short. Each value also leaves out what those before it
/// do.
enum class left_out { nothing, values, nested_frames, nested, frames };

/// The record as a JSON object, each text within `texts` bytes. Members with a default value are
/// left out.
base::json json_of(const error_record& error, std::size_t texts,
                   left_out without = left_out::nothing);

/// Reads a record. Members of a wrong type or out of range are ignored. Texts are cleaned, and none
/// is longer than `texts`.
error_record error_in(const base::json& object, std::size_t texts);

/// What is left out of the outcomes when a failure must be short. Each value also leaves out what
/// those before it do.
enum class brevity { whole, without_results, without_details, without_streams };

/// The longest text in an error without details, and of a stream, in bytes.
inline constexpr std::size_t brief_text = 1024;

/// {"code": 3} or {"signal": 11, "core": true}; null when the status is not known.
base::json json_of(const exit_status& status);
/// The status in an object's member "status".
exit_status status_at(const base::json& object);

base::json json_of(const error_record& error, brevity how);
/// How much of the head and the tail of a stream is written, in bytes.
std::size_t stream_limit(brevity how) noexcept;
base::json json_of(const outcome& one, brevity how);
outcome outcome_in(const base::json& object);

}  // namespace cohort::protocol

// The fields of what a worker has left, each described once. As JSON and on the link between hosts
// they come from others: a value that its field can't have is treated as missing, or refused.
namespace cohort::protocol {

inline constexpr std::size_t any_length = std::numeric_limits<std::size_t>::max();

// What a field may have.
namespace fields {

struct texts {
    enum class of { names, prose, digits } kind;
    std::size_t most = any_length;
};
inline constexpr texts name{texts::of::names, base::name_limit};  // a longer one loses its end
inline constexpr texts prose{texts::of::prose};                   // a longer one loses its middle
inline constexpr texts build_id{texts::of::digits, 128};          // today's linkers write 40

/// Of these numbers those that its type can have.
struct numbers {
    std::int64_t least = std::numeric_limits<std::int64_t>::min();
    std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

    template <std::integral N>
    N lowest() const {
        return static_cast<N>(std::max<std::int64_t>(least, std::numeric_limits<N>::min()));
    }
    template <std::integral N>
    N highest() const {
        return static_cast<N>(std::min<std::uint64_t>(most, std::numeric_limits<N>::max()));
    }
};
inline constexpr numbers letter{' ' + 1, '~'};

/// Any value of the type.
struct any {};

}  // namespace fields

template <class T, class Member, class Rule>
struct field {
    const char* name;  // in JSON
    Member T::*member;
    Rule rule;
    bool is_always_there;

    constexpr field(const char* in_json, Member T::*which, Rule what, bool always = false)
        : name(in_json), member(which), rule(what), is_always_there(always) {}
};

/// The fields of a type.
template <class T>
inline constexpr std::tuple<> fields_of;

template <>
inline constexpr std::tuple fields_of<stack_frame>{
    field("m", &stack_frame::module, fields::name),
    field("b", &stack_frame::build_id, fields::build_id),
    field("o", &stack_frame::offset, fields::numbers{}),
    field("f", &stack_frame::function, fields::name),
    field("s", &stack_frame::file, fields::name),
    field("l", &stack_frame::line, fields::numbers{0}),
    field("i", &stack_frame::inlined, fields::any{})};

template <>
inline constexpr std::tuple fields_of<crash_record>{
    field("signal", &crash_record::signal, fields::numbers{1, 64}, true),
    field("code", &crash_record::code, fields::numbers{}),
    field("address", &crash_record::address, fields::numbers{}),
    field("trace", &crash_record::trace, fields::prose),
    field("frames", &crash_record::frames, fields::any{})};

template <>
inline constexpr std::tuple fields_of<activity>{
    field("id", &activity::id, fields::numbers{0}), field("name", &activity::name, fields::name),
    field("state", &activity::state, fields::letter, true),
    field("wait", &activity::wait_channel, fields::name),
    field("frames", &activity::frames, fields::any{})};

template <>
inline constexpr std::tuple fields_of<resource_usage>{
    field("user_time", &resource_usage::user_time, fields::numbers{0}),
    field("system_time", &resource_usage::system_time, fields::numbers{0}),
    field("max_rss", &resource_usage::max_rss, fields::numbers{0}),
    field("minor_faults", &resource_usage::minor_faults, fields::numbers{0}),
    field("major_faults", &resource_usage::major_faults, fields::numbers{0}),
    field("voluntary_switches", &resource_usage::voluntary_switches, fields::numbers{0}),
    field("involuntary_switches", &resource_usage::involuntary_switches, fields::numbers{0})};

/// Without the causes, the time and the value.
template <>
inline constexpr std::tuple fields_of<error_record>{
    field("type", &error_record::type, fields::name),
    field("message", &error_record::message, fields::prose, true),
    field("trace", &error_record::trace, fields::prose),
    field("frames", &error_record::frames, fields::any{}),
    field("code", &error_record::code, fields::numbers{}),
    field("category", &error_record::category, fields::name),
    field("worker", &error_record::worker, fields::numbers{-1}),
    field("pid", &error_record::pid, fields::numbers{0})};

/// Its plain values. A link carries an outcome in another way.
template <>
inline constexpr std::tuple fields_of<outcome>{
    field("index", &outcome::index, fields::numbers{-1}),
    field("attempt", &outcome::attempt, fields::numbers{0}),
    field("restarted", &outcome::restarted, fields::any{}),
    field("host", &outcome::host, fields::prose),
    field("pid", &outcome::pid, fields::numbers{0}),
    field("first_failure", &outcome::first_failure, fields::any{})};

template <class T>
void for_each_field(auto call) {
    std::apply([&](const auto&... all) { (call(all), ...); }, fields_of<T>);
}

inline base::json field_json(const std::string& value, const fields::texts& rule,
                             std::size_t longest) {
    return rule.kind == fields::texts::of::prose
               ? base::clean_and_bounded(value, longest)
               : base::clean_head(value, std::min(rule.most, longest));
}
template <std::integral N>
base::json field_json(N value, const auto&, std::size_t) {
    if constexpr (std::same_as<N, char>)
        return std::string(1, value);
    else
        return value;
}
inline base::json field_json(std::chrono::microseconds value, const fields::numbers&, std::size_t) {
    return value.count();
}
inline base::json field_json(const std::vector<stack_frame>& frames, fields::any, std::size_t) {
    return json_of(frames);
}

inline void take(std::string& to, const base::json& object, const char* name,
                 const fields::texts& rule, std::size_t longest) {
    auto text = base::text_at(object, name);
    if (rule.kind == fields::texts::of::prose)
        to = base::clean_and_bounded(text, longest);
    else if (rule.kind == fields::texts::of::names)
        to = base::clean_head(text, rule.most);
    else if (text.size() <= rule.most && base::bytes_of_hex(text))
        to = std::move(text);
}
inline void take(bool& to, const base::json& object, const char* name, fields::any, std::size_t) {
    to = base::flag_at(object, name);
}
inline void take(char& to, const base::json& object, const char* name, const fields::numbers& rule,
                 std::size_t) {
    if (const auto text = base::text_at(object, name);
        text.size() == 1 && text[0] >= rule.lowest<char>() && text[0] <= rule.highest<char>())
        to = text[0];
}
template <std::integral N>
void take(N& to, const base::json& object, const char* name, const fields::numbers& rule,
          std::size_t) {
    const auto found = base::integer_at<N>(object, name);
    if (found && *found >= rule.lowest<N>() && *found <= rule.highest<N>())
        to = *found;
}
inline void take(std::chrono::microseconds& to, const base::json& object, const char* name,
                 const fields::numbers& rule, std::size_t) {
    auto count = to.count();
    take(count, object, name, rule, 0);
    to = std::chrono::microseconds(count);
}
inline void take(std::vector<stack_frame>& to, const base::json& object, const char*, fields::any,
                 std::size_t) {
    to = frames_at(object);
}

/// Fields with their default value are left out.
/// @param longest  text, in bytes
template <class T>
base::json json_of_fields(const T& value, std::size_t longest = any_length) {
    [[maybe_unused]] static const T none{};
    base::json object = base::json::object();
    for_each_field<T>([&](const auto& one) {
        if (one.is_always_there || value.*one.member != none.*one.member)
            object[one.name] = field_json(value.*one.member, one.rule, longest);
    });
    return object;
}

/// Fields that are missing have their default value.
template <class T>
T fields_in(const base::json& object, std::size_t longest = any_length) {
    T value{};
    for_each_field<T>(
        [&](const auto& one) { take(value.*one.member, object, one.name, one.rule, longest); });
    return value;
}

}  // namespace cohort::protocol
