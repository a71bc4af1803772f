// SPDX-License-Identifier: BSL-1.0
#include "record/frames_json.hpp"

#include <algorithm>
#include <array>

#include <csignal>

namespace cohort::record {
namespace {

constexpr std::size_t build_id_limit = 128;  // in digits; those of today's linkers have 40
constexpr std::array crash_signals{SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

std::string build_id_at(const json& object) {
    std::string id = text_at(object, "b");
    return id.size() <= build_id_limit && bytes_of_hex(id) ? id : std::string();
}

json frame_json(const stack_frame& frame) {
    json object = json::object();
    put(object, "m", clean_head(frame.module, name_limit));
    put(object, "b", clean_head(frame.build_id, build_id_limit));
    put(object, "o", frame.offset, 0);
    put(object, "f", clean_head(frame.function, name_limit));
    put(object, "s", clean_head(frame.file, name_limit));
    put(object, "l", frame.line, 0);
    put(object, "i", frame.inlined, false);
    return object;
}

stack_frame frame_in(const json& object) {
    stack_frame frame;
    frame.module = name_at(object, "m");
    frame.build_id = build_id_at(object);
    frame.offset = integer_at<std::uint64_t>(object, "o").value_or(0);
    frame.function = name_at(object, "f");
    frame.file = name_at(object, "s");
    frame.line = std::max(0, integer_at<int>(object, "l").value_or(0));
    frame.inlined = flag_at(object, "i");
    return frame;
}

json activity_json(const activity& one) {
    json object = json::object();
    put(object, "id", one.id, 0);
    put(object, "name", clean_head(one.name, name_limit));
    object["state"] = std::string(1, one.state);
    put(object, "wait", clean_head(one.wait_channel, name_limit));
    if (!one.frames.empty())
        object["frames"] = json_of(one.frames);
    return object;
}

activity activity_in(const json& object) {
    activity one;
    one.id = std::max(0, integer_at<pid_t>(object, "id").value_or(0));
    one.name = name_at(object, "name");
    const std::string state = text_at(object, "state");
    if (state.size() == 1 && state[0] > ' ' && state[0] < '\x7F')
        one.state = state[0];
    one.wait_channel = name_at(object, "wait");
    one.frames = frames_at(object);
    return one;
}

}  // namespace

json json_of(const std::vector<stack_frame>& frames) {
    json list = json::array();
    for (auto frame = frames.rbegin(); frame != frames.rend() && list.size() < frame_limit; ++frame)
        list.push_back(frame_json(*frame));
    return list;
}

std::vector<stack_frame> frames_at(const json& object) {
    std::vector<stack_frame> frames;
    const auto found = object.find("frames");
    if (found == object.end() || !found->is_array())
        return frames;
    for (const json& frame : *found) {
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

json json_of(const crash_record& crash) {
    json object = json::object();
    object["signal"] = crash.signal;
    put(object, "code", crash.code, 0);
    put(object, "address", crash.address, 0);
    put(object, "trace", clean(crash.trace));
    if (!crash.frames.empty())
        object["frames"] = json_of(crash.frames);
    return object;
}

std::optional<crash_record> crash_in(const json& object) {
    crash_record crash;
    crash.signal = integer_at<int>(object, "signal").value_or(0);
    if (std::find(crash_signals.begin(), crash_signals.end(), crash.signal) == crash_signals.end())
        return std::nullopt;
    crash.code = integer_at<int>(object, "code").value_or(0);
    crash.address = integer_at<std::uint64_t>(object, "address").value_or(0);
    crash.trace = clean(text_at(object, "trace"));
    crash.frames = frames_at(object);
    return crash;
}

json json_of(const std::vector<activity>& activities) {
    json list = json::array();
    for (const activity& one : activities) {
        if (list.size() == activity_limit)
            break;
        list.push_back(activity_json(one));
    }
    return list;
}

std::vector<activity> activities_at(const json& object, const char* name) {
    std::vector<activity> activities;
    const auto found = object.find(name);
    if (found == object.end() || !found->is_array())
        return activities;
    for (const json& one : *found) {
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
