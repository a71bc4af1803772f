// SPDX-License-Identifier: BSL-1.0
#include "record/error_json.hpp"

#include "record/json.hpp"

#include <algorithm>

namespace cohort::record {
namespace {

constexpr std::string_view blank("\0 \t\r\n\v\f", 7);
constexpr std::size_t depth_limit = 64;
constexpr std::size_t longest_type = 256;

std::string_view trimmed(std::string_view text) noexcept {
    const auto first = text.find_first_not_of(blank);
    if (first == std::string_view::npos)
        return {};
    return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

std::string_view without_line_ends(std::string_view text) noexcept {
    const auto last = text.find_last_not_of("\r\n");
    return last == std::string_view::npos ? std::string_view{} : text.substr(0, last + 1);
}

/// Valid UTF-8 without NULs, which would end a what() too early.
std::string clean(std::string_view text) {
    if (text.find('\0') == std::string_view::npos)
        return valid_utf8(text);
    std::string visible;
    for (const char c : text)
        c == '\0' ? visible += "\xEF\xBF\xBD" : visible += c;
    return valid_utf8(visible);
}

std::string clean_and_bounded(std::string_view text, std::size_t limit) {
    return bounded(clean(bounded(text, limit)), limit);
}

/// A parser would build all the levels of "[[[[..." before it sees that they do not end.
bool is_shallow(std::string_view text) noexcept {
    std::size_t depth = 0;
    bool in_string = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (in_string) {
            if (c == '\\')
                ++i;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            if (++depth > depth_limit)
                return false;
        } else if ((c == ']' || c == '}') && depth > 0) {
            --depth;
        }
    }
    return true;
}

std::string text_at(const json& object, const char* name) {
    const auto found = object.find(name);
    if (found == object.end() || !found->is_string())
        return {};
    return found->get<std::string>();
}

bool is_type_name(std::string_view text) noexcept {
    if (text.empty() || text.size() > longest_type || (text[0] >= '0' && text[0] <= '9'))
        return false;
    return std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '.';
    });
}

/// {"message": "<Type>: <text>", "extraInfo": {"py_callstack": "..."}}
error_record from_torch(const json& inner) {
    error_record error;
    error.message = text_at(inner, "message");
    const auto colon = error.message.find(": ");
    if (colon != std::string::npos &&
        is_type_name(std::string_view(error.message).substr(0, colon))) {
        error.type = error.message.substr(0, colon);
        error.message.erase(0, colon + 2);
    }
    const auto extra = inner.find("extraInfo");
    if (extra != inner.end() && extra->is_object())
        error.trace = text_at(*extra, "py_callstack");
    return error;
}

std::optional<error_record> from_json(const json& object) {
    if (!object.is_object())
        return std::nullopt;
    const auto message = object.find("message");
    if (message == object.end())
        return std::nullopt;
    if (message->is_object())
        return from_torch(*message);
    if (!message->is_string())
        return std::nullopt;
    error_record error;
    error.type = text_at(object, "type");
    error.message = message->get<std::string>();
    error.trace = text_at(object, "trace");
    return error;
}

/// What a person reads, with the message as its end, within the limit.
std::string trace_of(const error_record& error) {
    const std::string line = error.type.empty() ? error.message : error.type + ": " + error.message;
    std::string trace = error.trace;
    if (!trace.ends_with(error.message) || trace.empty()) {
        trace = without_line_ends(trace);
        if (trace.empty())
            trace = line;
        else if (!trace.ends_with(error.message))
            trace += "\n" + line;
    }
    trace = bounded(trace, text_limit);
    return trace.ends_with(error.message) ? trace : error.message;
}

error_record finished(error_record error) {
    error.type = clean_and_bounded(error.type, longest_type);
    error.message = clean_and_bounded(error.message, text_limit);
    error.trace = clean(bounded(error.trace, text_limit));
    error.trace = trace_of(error);
    return error;
}

error_record plain(std::string text) {
    error_record error;
    error.message = std::move(text);
    error.trace = error.message;
    return error;
}

std::optional<error_record> read_whole(std::string_view bytes) {
    const std::string_view text = trimmed(bytes);
    if (text.empty())
        return std::nullopt;
    if (text.size() <= record_limit && is_shallow(text)) {
        const json parsed = json::parse(valid_utf8(text), nullptr, /*allow_exceptions=*/false);
        auto error = from_json(parsed);
        if (error && !(error->type.empty() && error->message.empty() && error->trace.empty())) {
            return finished(std::move(*error));
        }
    }
    return plain(clean_and_bounded(text, text_limit));
}

/// A file too long to be read whole is text, whatever it once was.
std::optional<error_record> read_edges(std::string_view head, std::string_view tail,
                                       std::uint64_t size) {
    if (trimmed(head).empty() && trimmed(tail).empty())
        return std::nullopt;
    const std::string_view first = head.substr(0, text_limit / 2);
    const std::string_view last = tail.substr(tail.size() - std::min(tail.size(), text_limit / 2));
    const std::string clean_first = clean(first);
    const std::string clean_last = clean(last);
    return plain(
        bounded(clean_first, trimmed(clean_last), size - first.size() - last.size(), text_limit));
}

std::string_view view_of(std::span<const std::byte> bytes) noexcept {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string dumped(const error_record& error, std::size_t limit) {
    const std::size_t largest = std::min(limit, text_limit);
    json object = json::object();
    object["type"] = clean_and_bounded(error.type, std::min(longest_type, largest));
    object["message"] = clean_and_bounded(error.message, largest);
    object["trace"] = clean_and_bounded(error.trace, largest);
    return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

std::string write_error(const error_record& error, std::size_t limit) noexcept {
    try {
        // Escapes make texts longer: try again with shorter ones.
        for (std::size_t texts = limit; texts > 0; texts /= 2) {
            std::string record = dumped(error, texts);
            if (record.size() <= limit)
                return record;
        }
        return R"({"message":"the error was too long to be recorded"})";
    } catch (...) {
        return R"({"message":"?"})";  // no memory: short enough to need none
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

}  // namespace cohort::record
