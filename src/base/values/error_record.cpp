// SPDX-License-Identifier: BSL-1.0
#include <cohort/error_record.hpp>

#include <fmt/format.h>

namespace cohort {

std::string to_string(const error_record& e) {
    if (e.type.empty())
        return e.message;
    return e.message.empty() ? e.type : e.type + ": " + e.message;
}

std::string to_string(const stack_frame& f) {
    std::string text;
    if (!f.file.empty())
        text = fmt::format("File \"{}\", line {}", f.file, f.line);
    else
        text = fmt::format("Module \"{}\", offset {:#x}", f.module, f.offset);
    if (!f.function.empty())
        text += ", in " + f.function;
    if (f.inlined)
        text += " (inlined)";
    return text;
}

std::string to_string(const activity& a) {
    std::string text = fmt::format("{} ({}), state {}", a.id, a.name, a.state);
    if (!a.wait_channel.empty())
        text += ", waits in " + a.wait_channel;
    for (const auto& frame : a.frames)
        text += "\n  " + to_string(frame);
    return text;
}

}  // namespace cohort
