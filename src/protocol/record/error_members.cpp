// SPDX-License-Identifier: BSL-1.0
#include "protocol/record/error_members.hpp"

#include "protocol/record/frames_json.hpp"

#include <algorithm>

namespace cohort::protocol {
namespace {

/// All members but "nested".
base::json single(const error_record& error, std::size_t texts, bool with_value, bool with_frames) {
    base::json object = base::json::object();
    base::put(object, "type", base::clean_head(error.type, std::min(type_limit, texts)));
    object["message"] = base::clean_and_bounded(error.message, texts);
    base::put(object, "trace", base::clean_and_bounded(error.trace, texts));
    if (with_frames && !error.frames.empty())
        object["frames"] = json_of(error.frames);
    base::put(object, "code", error.code, 0);
    base::put(object, "category",
              base::clean_head(error.category, std::min(base::name_limit, texts)));
    base::put(object, "worker", error.worker, -1);
    base::put(object, "pid", error.pid, 0);
    if (error.timestamp)
        object["timestamp"] = base::seconds_of(*error.timestamp);
    const std::string& value = detail::error_record_access::value(error);
    if (with_value && value.size() <= value_limit)
        base::put(object, "value", base::hex_of(value));
    return object;
}

error_record single_in(const base::json& object, std::size_t texts) {
    error_record error;
    error.type = base::clean_head(base::text_at(object, "type"), type_limit);
    error.message = base::clean_and_bounded(base::text_at(object, "message"), texts);
    error.trace = base::clean_and_bounded(base::text_at(object, "trace"), texts);
    error.frames = frames_at(object);
    error.code = base::integer_at<int>(object, "code").value_or(0);
    error.category = base::name_at(object, "category");
    error.worker = std::max(-1, base::integer_at<int>(object, "worker").value_or(-1));
    error.pid = std::max(0, base::integer_at<pid_t>(object, "pid").value_or(0));
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

}  // namespace cohort::protocol
