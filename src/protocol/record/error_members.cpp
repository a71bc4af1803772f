// SPDX-License-Identifier: BSL-1.0
#include "protocol/record/error_members.hpp"

#include "protocol/record/fields.hpp"

#include <algorithm>

namespace cohort::protocol {
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

}  // namespace cohort::protocol
