// SPDX-License-Identifier: BSL-1.0
#include <cohort/sinks.hpp>

#include "output/routes/pattern.hpp"

#include <cohort/detail/placement.hpp>

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace cohort {

namespace {

constexpr std::uint64_t most_captured = std::uint64_t{1} << 30;

[[noreturn]] void refuse(const char* setter, std::string_view why) {
    throw std::invalid_argument(fmt::format("cohort: {}: {}", setter, why));
}

std::string checked_tag(const char* setter, std::string tag) {
    if (tag.find('\n') != std::string::npos)
        refuse(setter, "the tag has a newline");
    if (tag.find('\0') != std::string::npos)
        refuse(setter, "the tag has a NUL");
    output::check_pattern(setter, tag);
    return tag;
}

std::string checked_path(const char* setter, std::string path) {
    detail::require_path(setter, path);
    output::check_pattern(setter, path);
    return path;
}

}  // namespace

detail::sink detail::file_at(const char* setter, std::string path) {
    file_sink made;
    made.pattern = checked_path(setter, std::move(path));
    return made;
}

file::file(std::string path) { data_.pattern = checked_path("file", std::move(path)); }

file& file::append() noexcept {
    data_.appends = true;
    return *this;
}

file& file::truncate() noexcept {
    data_.appends = false;
    return *this;
}

file& file::set_rotation(std::uint64_t bytes, int keep) {
    if (bytes == 0)
        refuse("rotate", "a file of 0 bytes");
    if (keep < 1)
        refuse("rotate", fmt::format("at least one older file is kept, not {}", keep));
    data_.rotate_at = bytes;
    data_.kept = keep;
    return *this;
}

file& file::tagged() { return tagged("[{index}]: "); }

file& file::tagged(std::string tag) {
    data_.tag = checked_tag("tagged", std::move(tag));
    return *this;
}

file& file::timestamps() noexcept {
    data_.timestamps = true;
    return *this;
}

file& file::when_full(cohort::when_full what) noexcept {
    data_.full = what;
    return *this;
}

capture& capture::set(const char* setter, std::uint64_t head, std::uint64_t tail) {
    if (head > most_captured || tail > most_captured - head)
        refuse(setter, fmt::format("head and tail have {} and {} bytes, together more than 1 GiB",
                                   head, tail));
    data_.head = head;
    data_.tail = tail;
    return *this;
}

void lines::check(const char* setter, std::uint64_t buffer, std::uint64_t longest) {
    if (buffer == 0 || longest == 0)
        refuse(setter, "0 bytes");
    if (buffer < longest)
        refuse(setter, fmt::format("a buffer of {} bytes does not hold the longest line, {} bytes",
                                   buffer, longest));
}

lines& lines::set_buffer(std::uint64_t bytes) {
    check("buffer", bytes, data_.longest);
    data_.buffer = {bytes, true};
    return *this;
}

lines& lines::set_longest(std::uint64_t bytes) {
    check("longest_line", data_.buffer.bytes, bytes);
    data_.longest = bytes;
    return *this;
}

lines& lines::when_full(cohort::when_full what) noexcept {
    data_.full = what;
    return *this;
}

chunks& chunks::set_buffer(std::uint64_t bytes) {
    if (bytes == 0)
        refuse("buffer", "0 bytes");
    data_.buffer = {bytes, true};
    return *this;
}

chunks& chunks::when_full(cohort::when_full what) noexcept {
    data_.full = what;
    return *this;
}

console& console::tag(std::string text) {
    data_.tag = checked_tag("tag", std::move(text));
    return *this;
}

int console::index_of(int index) {
    if (index < 0)
        refuse("only", "no index of a worker");
    return index;
}

console& console::show(std::optional<std::set<int>> indices, detail::worker_filter filter) {
    if (filter && !*filter)
        refuse("only", "the function is empty");
    data_.only = std::move(indices);
    data_.filter = std::move(filter);
    return *this;
}

console& console::when_full(cohort::when_full what) noexcept {
    data_.full = what;
    return *this;
}

logs::logs(std::string directory) {
    detail::require_path("logs", directory);
    data_.directory = std::move(directory);
}

logs& logs::run_id(std::string text) {
    if (text.empty())
        refuse("run_id", "empty");
    if (text == "." || text == "..")
        refuse("run_id", fmt::format("\"{}\" is no name for a directory", text));
    if (const auto at = text.find_first_of(std::string_view("/\0", 2)); at != std::string::npos)
        refuse("run_id",
               fmt::format("\"{}\" has a {} at position {}", text.substr(0, text.find('\0')),
                           text[at] == '/' ? "'/'" : "NUL", at));
    data_.run_id = std::move(text);
    return *this;
}

}  // namespace cohort
