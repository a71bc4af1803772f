// SPDX-License-Identifier: BSL-1.0
#include "protocol/record/frames_json.hpp"

#include <algorithm>
#include <array>

#include <csignal>

namespace cohort::protocol {
namespace {

constexpr std::size_t build_id_limit = 128;  // in hexadecimal digits; today's linkers write 40
constexpr std::array crash_signals{SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

std::string build_id_at(const base::json& object) {
    std::string id = base::text_at(object, "b");
    return id.size() <= build_id_limit && base::bytes_of_hex(id) ? id : std::string();
}

base::json frame_json(const stack_frame& frame) {
    base::json object = base::json::object();
    base::put(object, "m", base::clean_head(frame.module, base::name_limit));
    base::put(object, "b", base::clean_head(frame.build_id, build_id_limit));
    base::put(object, "o", frame.offset, 0);
    base::put(object, "f", base::clean_head(frame.function, base::name_limit));
    base::put(object, "s", base::clean_head(frame.file, base::name_limit));
    base::put(object, "l", frame.line, 0);
    base::put(object, "i", frame.inlined, false);
    return object;
}

stack_frame frame_in(const base::json& object) {
    stack_frame frame;
    frame.module = base::name_at(object, "m");
    frame.build_id = build_id_at(object);
    frame.offset = base::integer_at<std::uint64_t>(object, "o").value_or(0);
    frame.function = base::name_at(object, "f");
    frame.file = base::name_at(object, "s");
    frame.line = std::max(0, base::integer_at<int>(object, "l").value_or(0));
    frame.inlined = base::flag_at(object, "i");
    return frame;
}

base::json activity_json(const activity& one) {
    base::json object = base::json::object();
    base::put(object, "id", one.id, 0);
    base::put(object, "name", base::clean_head(one.name, base::name_limit));
    object["state"] = std::string(1, one.state);
    base::put(object, "wait", base::clean_head(one.wait_channel, base::name_limit));
    if (!one.frames.empty())
        object["frames"] = json_of(one.frames);
    return object;
}

activity activity_in(const base::json& object) {
    activity one;
    one.id = std::max(0, base::integer_at<pid_t>(object, "id").value_or(0));
    one.name = base::name_at(object, "name");
    const std::string state = base::text_at(object, "state");
    if (state.size() == 1 && state[0] > ' ' && state[0] < '\x7F')
        one.state = state[0];
    one.wait_channel = base::name_at(object, "wait");
    one.frames = frames_at(object);
    return one;
}

}  // namespace

base::json json_of(const std::vector<stack_frame>& frames) {
    base::json list = base::json::array();
    for (auto frame = frames.rbegin(); frame != frames.rend() && list.size() < frame_limit; ++frame)
        list.push_back(frame_json(*frame));
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
        if (auto read = frame_in(frame); read != stack_frame())
            frames.push_back(std::move(read));
    }
    std::reverse(frames.begin(), frames.end());
    return frames;
}

base::json json_of(const crash_record& crash) {
    base::json object = base::json::object();
    object["signal"] = crash.signal;
    base::put(object, "code", crash.code, 0);
    base::put(object, "address", crash.address, 0);
    base::put(object, "trace", base::clean(crash.trace));
    if (!crash.frames.empty())
        object["frames"] = json_of(crash.frames);
    return object;
}

std::optional<crash_record> crash_in(const base::json& object) {
    crash_record crash;
    crash.signal = base::integer_at<int>(object, "signal").value_or(0);
    if (std::find(crash_signals.begin(), crash_signals.end(), crash.signal) == crash_signals.end())
        return std::nullopt;
    crash.code = base::integer_at<int>(object, "code").value_or(0);
    crash.address = base::integer_at<std::uint64_t>(object, "address").value_or(0);
    crash.trace = base::clean(base::text_at(object, "trace"));
    crash.frames = frames_at(object);
    return crash;
}

base::json json_of(const std::vector<activity>& activities) {
    base::json list = base::json::array();
    for (const activity& one : activities) {
        if (list.size() == activity_limit)
            break;
        list.push_back(activity_json(one));
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
        if (auto read = activity_in(one); read != activity())
            activities.push_back(std::move(read));
    }
    return activities;
}

}  // namespace cohort::protocol
