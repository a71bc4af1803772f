// SPDX-License-Identifier: BSL-1.0
#include "protocol/record/frames_json.hpp"

#include <algorithm>
#include <array>

#include <csignal>

namespace cohort::record {
namespace {

constexpr std::size_t build_id_limit = 128;  // in hexadecimal digits; today's linkers write 40
constexpr std::array crash_signals{SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

std::string build_id_at(const text::json& object) {
    std::string id = text::text_at(object, "b");
    return id.size() <= build_id_limit && text::bytes_of_hex(id) ? id : std::string();
}

text::json frame_json(const stack_frame& frame) {
    text::json object = text::json::object();
    text::put(object, "m", text::clean_head(frame.module, text::name_limit));
    text::put(object, "b", text::clean_head(frame.build_id, build_id_limit));
    text::put(object, "o", frame.offset, 0);
    text::put(object, "f", text::clean_head(frame.function, text::name_limit));
    text::put(object, "s", text::clean_head(frame.file, text::name_limit));
    text::put(object, "l", frame.line, 0);
    text::put(object, "i", frame.inlined, false);
    return object;
}

stack_frame frame_in(const text::json& object) {
    stack_frame frame;
    frame.module = text::name_at(object, "m");
    frame.build_id = build_id_at(object);
    frame.offset = text::integer_at<std::uint64_t>(object, "o").value_or(0);
    frame.function = text::name_at(object, "f");
    frame.file = text::name_at(object, "s");
    frame.line = std::max(0, text::integer_at<int>(object, "l").value_or(0));
    frame.inlined = text::flag_at(object, "i");
    return frame;
}

text::json activity_json(const activity& one) {
    text::json object = text::json::object();
    text::put(object, "id", one.id, 0);
    text::put(object, "name", text::clean_head(one.name, text::name_limit));
    object["state"] = std::string(1, one.state);
    text::put(object, "wait", text::clean_head(one.wait_channel, text::name_limit));
    if (!one.frames.empty())
        object["frames"] = json_of(one.frames);
    return object;
}

activity activity_in(const text::json& object) {
    activity one;
    one.id = std::max(0, text::integer_at<pid_t>(object, "id").value_or(0));
    one.name = text::name_at(object, "name");
    const std::string state = text::text_at(object, "state");
    if (state.size() == 1 && state[0] > ' ' && state[0] < '\x7F')
        one.state = state[0];
    one.wait_channel = text::name_at(object, "wait");
    one.frames = frames_at(object);
    return one;
}

}  // namespace

text::json json_of(const std::vector<stack_frame>& frames) {
    text::json list = text::json::array();
    for (auto frame = frames.rbegin(); frame != frames.rend() && list.size() < frame_limit; ++frame)
        list.push_back(frame_json(*frame));
    return list;
}

std::vector<stack_frame> frames_at(const text::json& object) {
    std::vector<stack_frame> frames;
    const auto found = object.find("frames");
    if (found == object.end() || !found->is_array())
        return frames;
    for (const text::json& frame : *found) {
        if (frames.size() == frame_limit)
            break;
        if (!frame.is_object())
            continue;
        if (auto read = frame_in(frame); read != stack_frame())
            frames.push_back(std::move(read));
    }
    std::reverse(frames.begin(), frames.end());
    return frames;
}

text::json json_of(const crash_record& crash) {
    text::json object = text::json::object();
    object["signal"] = crash.signal;
    text::put(object, "code", crash.code, 0);
    text::put(object, "address", crash.address, 0);
    text::put(object, "trace", text::clean(crash.trace));
    if (!crash.frames.empty())
        object["frames"] = json_of(crash.frames);
    return object;
}

std::optional<crash_record> crash_in(const text::json& object) {
    crash_record crash;
    crash.signal = text::integer_at<int>(object, "signal").value_or(0);
    if (std::find(crash_signals.begin(), crash_signals.end(), crash.signal) == crash_signals.end())
        return std::nullopt;
    crash.code = text::integer_at<int>(object, "code").value_or(0);
    crash.address = text::integer_at<std::uint64_t>(object, "address").value_or(0);
    crash.trace = text::clean(text::text_at(object, "trace"));
    crash.frames = frames_at(object);
    return crash;
}

text::json json_of(const std::vector<activity>& activities) {
    text::json list = text::json::array();
    for (const activity& one : activities) {
        if (list.size() == activity_limit)
            break;
        list.push_back(activity_json(one));
    }
    return list;
}

std::vector<activity> activities_at(const text::json& object, const char* name) {
    std::vector<activity> activities;
    const auto found = object.find(name);
    if (found == object.end() || !found->is_array())
        return activities;
    for (const text::json& one : *found) {
        if (activities.size() == activity_limit)
            break;
        if (!one.is_object())
            continue;
        if (auto read = activity_in(one); read != activity())
            activities.push_back(std::move(read));
    }
    return activities;
}

}  // namespace cohort::record
