// SPDX-License-Identifier: BSL-1.0
#include "protocol/record/error_json.hpp"

#include "base/text/text.hpp"
#include "protocol/record/fields.hpp"
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

namespace {

constexpr std::size_t long_text = std::size_t{1} << 16;

std::string_view without_line_ends(std::string_view text) noexcept {
    const auto last = text.find_last_not_of("\r\n");
    return last == std::string_view::npos ? std::string_view{} : text.substr(0, last + 1);
}

bool is_type_name(std::string_view text) noexcept {
    if (text.empty() || text.size() > type_limit || (text[0] >= '0' && text[0] <= '9'))
        return false;
    return std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '.';
    });
}

/// {"message": "<Type>: <text>", "extraInfo": {"py_callstack": "..."}}
error_record from_torch(const base::json& inner) {
    error_record error;
    error.message = base::text_at(inner, "message");
    const auto colon = error.message.find(": ");
    if (colon != std::string::npos &&
        is_type_name(std::string_view(error.message).substr(0, colon))) {
        error.type = error.message.substr(0, colon);
        error.message.erase(0, colon + 2);
    }
    const auto extra = inner.find("extraInfo");
    if (extra != inner.end() && extra->is_object()) {
        error.trace = base::text_at(*extra, "py_callstack");
        error.timestamp = base::time_at(*extra, "timestamp");
    }
    return error;
}

std::optional<error_record> from_json(const base::json& object) {
    const auto message = object.find("message");
    if (message != object.end() && message->is_object())
        return from_torch(*message);
    if (message == object.end() || !message->is_string())
        return std::nullopt;
    return error_in(object, base::text_limit);
}

/// The text that a person reads: within the limit, and ending with the message.
std::string trace_of(const error_record& error, std::size_t limit) {
    std::string trace = error.trace;
    if (!trace.ends_with(error.message) || trace.empty()) {
        trace = without_line_ends(trace);
        if (trace.empty())
            trace = closing_line(error);
        else if (!trace.ends_with(error.message))
            trace.append("\n").append(closing_line(error));
    }
    trace = base::bounded(trace, limit);
    return trace.ends_with(error.message) ? trace : error.message;
}

error_record finished(error_record error) {
    error.type = base::clean_head(error.type, type_limit);
    error.message = base::clean_and_bounded(error.message, base::text_limit);
    error.trace = base::clean(base::bounded(error.trace, base::text_limit));
    error.trace = trace_of(error, base::text_limit);
    for (error_record& entry : error.nested)
        entry.trace = trace_of(entry, nested_text_limit);
    return error;
}

error_record plain(std::string text) {
    error_record error;
    error.message = std::move(text);
    error.trace = error.message;
    return error;
}

std::optional<error_record> read_whole(std::string_view bytes) {
    const std::string_view text = base::trimmed(bytes);
    if (text.empty())
        return std::nullopt;
    if (text.size() <= record_limit) {
        auto error = from_json(base::parsed(text, base::most_values));
        if (error && !(error->type.empty() && error->message.empty() && error->trace.empty()))
            return finished(std::move(*error));
    }
    return plain(base::clean_and_bounded(text, base::text_limit));
}

/// A file that is too long to be read whole is taken as text, even if it is JSON.
std::optional<error_record> read_edges(std::string_view head, std::string_view tail,
                                       std::uint64_t size) {
    if (base::trimmed(head).empty() && base::trimmed(tail).empty())
        return std::nullopt;
    const std::string_view first = head.substr(0, base::text_limit / 2);
    const std::string_view last =
        tail.substr(tail.size() - std::min(tail.size(), base::text_limit / 2));
    const std::string clean_first = base::clean(first);
    const std::string clean_last = base::clean(last);
    return plain(base::bounded(clean_first, base::trimmed(clean_last),
                               size - first.size() - last.size(), base::text_limit));
}

std::string_view view_of(std::span<const std::byte> bytes) noexcept {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The record as JSON, with as many of its members as fit into `limit` bytes.
std::string fitted(const error_record& error, std::size_t limit) {
    std::size_t texts = std::min(limit, base::text_limit);
    std::string record;
    const auto fits = [&](left_out without) {
        record = base::line_of(json_of(error, texts, without));
        return record.size() <= limit;
    };
    // Escapes make texts longer: try again with shorter ones.
    for (; texts > long_text; texts /= 2)
        if (fits(left_out::nothing))
            return record;
    for (const auto without : {left_out::nothing, left_out::values, left_out::nested_frames,
                               left_out::nested, left_out::frames})
        if (fits(without))
            return record;
    for (texts /= 2; texts > 0; texts /= 2)
        if (fits(left_out::frames))
            return record;
    return R"({"message":"the error was too long to be recorded"})";
}

/// The most important members of the error.
error_record in_brief(const error_record& error) {
    error_record brief;
    brief.type = base::head_of(error.type, type_limit);
    brief.message = base::bounded(error.message, short_record_limit / 2);
    brief.code = error.code;
    brief.category = base::head_of(error.category, base::name_limit);
    return brief;
}

}  // namespace

std::string write_error(const error_record& error, std::size_t limit) noexcept {
    try {
        return fitted(error, limit);
    } catch (...) {  // no memory
    }
    try {
        return fitted(in_brief(error), short_record_limit);
    } catch (...) {
        return R"({"message":"?"})";  // short enough to need no allocation
    }
}

std::optional<error_record> read_error(std::span<const std::byte> bytes, std::uint64_t size,
                                       std::span<const std::byte> tail) noexcept {
    try {
        if (size <= bytes.size())
            return read_whole(view_of(bytes));
        const std::uint64_t rest = size - bytes.size();
        if (tail.size() > rest)
            tail = tail.last(static_cast<std::size_t>(rest));
        if (tail.size() == rest) {
            std::string joined(view_of(bytes));
            joined += view_of(tail);
            return read_whole(joined);
        }
        return read_edges(view_of(bytes), view_of(tail), size);
    } catch (...) {
        error_record error;
        error.message = "no memory";
        error.trace = error.message;
        return error;
    }
}

}  // namespace cohort::protocol
