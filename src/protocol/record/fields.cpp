// SPDX-License-Identifier: BSL-1.0
#include "protocol/record/fields.hpp"

#include "base/text/text.hpp"
#include "base/values/captured_json.hpp"

#include <algorithm>
#include <array>
#include <csignal>

namespace cohort::protocol {
namespace {

constexpr std::array crash_signals{SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

}  // namespace

base::json json_of(const std::vector<stack_frame>& frames) {
    base::json list = base::json::array();
    for (auto frame = frames.rbegin(); frame != frames.rend() && list.size() < frame_limit; ++frame)
        list.push_back(json_of_fields(*frame));
    return list;
}

std::vector<stack_frame> frames_at(const base::json& object) {
    std::vector<stack_frame> frames;
    const auto found = object.find("frames");
    if (found == object.end() || !found->is_array())
        return frames;
    for (const base::json& frame : *found) {
        if (frames.size() == frame_limit)
            break;
        if (!frame.is_object())
            continue;
        if (auto read = fields_in<stack_frame>(frame); read != stack_frame())
            frames.push_back(std::move(read));
    }
    std::reverse(frames.begin(), frames.end());
    return frames;
}

base::json json_of(const crash_record& crash) { return json_of_fields(crash); }

std::optional<crash_record> crash_in(const base::json& object) {
    auto crash = fields_in<crash_record>(object);
    if (std::find(crash_signals.begin(), crash_signals.end(), crash.signal) == crash_signals.end())
        return std::nullopt;
    return crash;
}

base::json json_of(const std::vector<activity>& activities) {
    base::json list = base::json::array();
    for (const activity& one : activities) {
        if (list.size() == activity_limit)
            break;
        list.push_back(json_of_fields(one));
    }
    return list;
}

std::vector<activity> activities_at(const base::json& object, const char* name) {
    std::vector<activity> activities;
    const auto found = object.find(name);
    if (found == object.end() || !found->is_array())
        return activities;
    for (const base::json& one : *found) {
        if (activities.size() == activity_limit)
            break;
        if (!one.is_object())
            continue;
        if (auto read = fields_in<activity>(one); read != activity())
            activities.push_back(std::move(read));
    }
    return activities;
}

namespace {

/// All members but "nested".
base::json single(const error_record& error, std::size_t texts, bool with_value, bool with_frames) {
    base::json object = json_of_fields(error, texts);
    if (!with_frames)
        object.erase("frames");
    if (error.timestamp)
        object["timestamp"] = base::seconds_of(*error.timestamp);
    const std::string& value = detail::error_record_access::value(error);
    if (with_value && value.size() <= value_limit)
        base::put(object, "value", base::hex_of(value));
    return object;
}

error_record single_in(const base::json& object, std::size_t texts) {
    auto error = fields_in<error_record>(object, texts);
    error.timestamp = base::time_at(object, "timestamp");
    const std::string digits = base::text_at(object, "value");
    if (digits.size() <= 2 * value_limit)
        detail::error_record_access::value(error) = base::bytes_of_hex(digits).value_or("");
    return error;
}

}  // namespace

base::json json_of(const error_record& error, std::size_t texts, left_out without) {
    const bool with_value = without < left_out::values;
    base::json object = single(error, texts, with_value, without < left_out::frames);
    if (error.nested.empty() || without >= left_out::nested)
        return object;
    base::json list = base::json::array();
    for (const error_record& entry : error.nested) {
        if (list.size() == nested_limit)
            break;
        list.push_back(single(entry, std::min(texts, nested_text_limit), with_value,
                              without < left_out::nested_frames));
    }
    object["nested"] = std::move(list);
    return object;
}

error_record error_in(const base::json& object, std::size_t texts) {
    error_record error = single_in(object, texts);
    const auto nested = object.find("nested");
    if (nested == object.end() || !nested->is_array())
        return error;
    for (const base::json& entry : *nested) {
        if (error.nested.size() == nested_limit)
            break;
        if (!entry.is_object())
            continue;
        if (auto read = single_in(entry, std::min(texts, nested_text_limit));
            read != error_record())
            error.nested.push_back(std::move(read));
    }
    return error;
}

namespace {

/// Of a history in a file that anybody may have written.
constexpr std::size_t most_attempts = 100;

using steady_time = std::chrono::steady_clock::time_point;

std::int64_t nanoseconds(steady_time time) noexcept {
    return std::chrono::nanoseconds(time.time_since_epoch()).count();
}

steady_time steady_time_at(const base::json& object, const char* name) {
    const auto count = base::integer_at<std::int64_t>(object, name).value_or(0);
    return steady_time(std::chrono::nanoseconds(std::max<std::int64_t>(count, 0)));
}

/// An object's member if that is an object too, else an empty object.
base::json object_at(const base::json& object, const char* name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_object() ? *found : base::json::object();
}

cause cause_at(const base::json& object) {
    const std::string name = base::text_at(object, "cause");
    for (int i = 0; i <= static_cast<int>(cause::host_lost); ++i)
        if (name == to_string(static_cast<cause>(i)))
            return static_cast<cause>(i);
    return cause::lost;
}

base::json json_of_result(const detail::result_bytes& result) {
    base::json object = base::json::object();
    base::put(object, "type", result.type);
    base::put(
        object, "cbor",
        base::hex_of({reinterpret_cast<const char*>(result.cbor.data()), result.cbor.size()}));
    return object;
}

std::shared_ptr<const detail::result_bytes> result_in(const base::json& object) {
    const auto cbor = base::bytes_of_hex(base::text_at(object, "cbor"));
    if (!cbor)
        return nullptr;
    const auto* first = reinterpret_cast<const std::byte*>(cbor->data());
    return std::make_shared<detail::result_bytes>(detail::result_bytes{
        base::clean(base::text_at(object, "type")), {first, first + cbor->size()}});
}

void put(base::json& object, const char* name, const captured& text, brevity how) {
    static const captured nothing;
    if (text != nothing)
        object[name] = base::json_of(text, stream_limit(how));
}

}  // namespace

base::json json_of(const exit_status& status) {
    if (!status.known())
        return nullptr;
    base::json object = base::json::object();
    if (status.exited())
        object["code"] = status.exit_code();
    else
        object["signal"] = status.signal();
    base::put(object, "core", status.core_dumped(), false);
    return object;
}

exit_status status_at(const base::json& object) {
    const base::json status = object_at(object, "status");
    if (const auto code = base::integer_at<int>(status, "code"))
        return exit_status::from_code(*code);
    const int signal = base::integer_at<int>(status, "signal").value_or(0);
    return signal > 0 ? exit_status::from_signal(signal, base::flag_at(status, "core"))
                      : exit_status();
}

base::json json_of(const error_record& error, brevity how) {
    return how >= brevity::without_details ? json_of(error, brief_text, left_out::frames)
                                           : json_of(error, base::text_limit);
}

std::size_t stream_limit(brevity how) noexcept {
    if (how == brevity::without_streams)
        return 0;
    return how == brevity::without_details ? brief_text : base::text_limit;
}

base::json json_of(const outcome& one, brevity how) {
    base::json object = json_of_fields(one, base::text_limit);
    object["status"] = json_of(one.status);
    object["cause"] = to_string(one.cause);
    base::put(object, "started", nanoseconds(one.started), 0);
    base::put(object, "ended", nanoseconds(one.ended), 0);
    if (one.started_at != std::chrono::system_clock::time_point()) {
        object["started_at"] = base::time_of_day(one.started_at);
        object["ended_at"] = base::time_of_day(one.ended_at);
    }
    base::put(object, "work", base::clean_and_bounded(one.work(), base::text_limit));
    object["usage"] = json_of_fields(one.usage);
    if (detail::outcome_access::has_parents_memory(one))
        object["usage"].erase("max_rss");
    base::put(object, "success", one.success(), false);
    base::put(object, "command", detail::outcome_access::is_command(one), false);
    base::put(object, "merged", detail::outcome_access::merges(one), false);
    base::put(object, "note", base::clean_and_bounded(one.note(), base::text_limit));
    if (const auto* result = detail::outcome_access::result(one);
        result != nullptr && how == brevity::whole)
        object["result"] = json_of_result(*result);
    put(object, "stdout", one.out, how);
    put(object, "stderr", one.err, how);
    const bool details = how < brevity::without_details;
    if (one.error)
        object["error"] = json_of(*one.error, how);
    if (one.crash && details)
        object["crash"] = json_of(*one.crash);
    if (!one.at_stop.empty() && details)
        object["at_stop"] = json_of(one.at_stop);
    if (!one.history.empty() && details) {
        auto& history = object["history"] = base::json::array();
        for (const auto& attempt : one.history)
            history.push_back(json_of(attempt, how));
    }
    return object;
}

namespace {

/// An outcome without its history.
outcome attempt_in(const base::json& object) {
    auto one = fields_in<outcome>(object, base::text_limit);
    one.status = status_at(object);
    one.cause = cause_at(object);
    one.started = steady_time_at(object, "started");
    one.ended = steady_time_at(object, "ended");
    one.started_at = base::time_of_day_in(base::text_at(object, "started_at"));
    one.ended_at = base::time_of_day_in(base::text_at(object, "ended_at"));
    if (const auto work = base::text_at(object, "work"); !work.empty())
        detail::outcome_access::work(one) =
            std::make_shared<const std::string>(base::clean_and_bounded(work, base::text_limit));
    one.usage = fields_in<resource_usage>(object_at(object, "usage"));
    if (const auto error = object.find("error"); error != object.end() && error->is_object())
        one.error = error_in(*error, base::text_limit);
    one.crash = crash_in(object_at(object, "crash"));
    one.at_stop = activities_at(object, "at_stop");
    one.out = base::captured_in(object_at(object, "stdout"));
    one.err = base::captured_in(object_at(object, "stderr"));
    detail::outcome_access::success(one) = base::flag_at(object, "success");
    detail::outcome_access::is_command(one) = base::flag_at(object, "command");
    detail::outcome_access::merges(one) = base::flag_at(object, "merged");
    detail::outcome_access::note(one) =
        base::clean_and_bounded(base::text_at(object, "note"), base::text_limit);
    if (const auto result = object.find("result"); result != object.end() && result->is_object())
        detail::outcome_access::result(one) = result_in(*result);
    return one;
}

}  // namespace

outcome outcome_in(const base::json& object) {
    outcome one = attempt_in(object);
    const auto history = object.find("history");
    if (history == object.end() || !history->is_array())
        return one;
    const std::size_t count = std::min(history->size(), most_attempts);
    for (auto at = history->end() - static_cast<std::ptrdiff_t>(count); at != history->end(); ++at)
        if (at->is_object())
            one.history.push_back(attempt_in(*at));
    return one;
}

}  // namespace cohort::protocol
