// SPDX-License-Identifier: BSL-1.0
#include "protocol/record/frames_json.hpp"

#include "protocol/record/fields.hpp"

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

}  // namespace cohort::protocol
