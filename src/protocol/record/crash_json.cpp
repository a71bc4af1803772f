// SPDX-License-Identifier: BSL-1.0
#include "protocol/record/crash_json.hpp"

#include "base/text/text.hpp"
#include "protocol/record/frames_json.hpp"
#include "protocol/record/traceback.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace cohort::protocol {
namespace {

// How many brackets are open inside a frame.
constexpr std::size_t in_frame_of_crash = 3;   // {"frames":[{
constexpr std::size_t in_frame_of_thread = 5;  // {"threads":[{"frames":[{

/// Where a JSON text can be cut and closed so that it is whole.
struct cut {
    std::size_t length = 0;
    std::string closers;
};

/// The last place to cut `text` so that no value is torn, and every object that is `whole_from` or
/// more levels deep is whole.
cut last_cut(std::string_view text, std::size_t whole_from) {
    cut best;
    std::string open;  // the brackets that will have to be closed, outermost first
    const auto remember = [&](std::size_t length) {
        best.length = length;
        best.closers.assign(open.rbegin(), open.rend());
    };
    for (base::outline walk(text); walk.next();) {
        const char c = walk.character();
        if (c == '{' || c == '[') {
            if (open.size() == whole_from)
                break;  // deeper than any text of ours
            open += c == '{' ? '}' : ']';
        } else if (c == '}' || c == ']') {
            if (open.empty() || open.back() != c)
                break;
            open.pop_back();
            remember(walk.place() + 1);
            if (open.empty())
                break;
        } else if (c == ',' && open.size() < whole_from) {
            remember(walk.place());
        }
    }
    return best;
}

/// Parses as much as possible of a text that may be torn.
base::json parsed_part(std::span<const std::byte> bytes, std::size_t whole_from) {
    const auto size = std::min(bytes.size(), crash_limit);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), size);
    const cut at = last_cut(text, whole_from);
    return base::parsed(std::string(text.substr(0, at.length)) + at.closers);
}

}  // namespace

std::optional<crash_record> read_crash(std::span<const std::byte> bytes) noexcept {
    try {
        auto crash = crash_in(parsed_part(bytes, in_frame_of_crash));
        if (crash)
            crash->trace = traceback_of(*crash);
        return crash;
    } catch (...) {
        return std::nullopt;  // no memory
    }
}

std::vector<activity> read_activities(std::span<const std::byte> bytes) noexcept {
    try {
        return activities_at(parsed_part(bytes, in_frame_of_thread), "threads");
    } catch (...) {
        return {};  // no memory
    }
}

}  // namespace cohort::protocol
