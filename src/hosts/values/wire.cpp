// SPDX-License-Identifier: BSL-1.0
#include "hosts/values/wire.hpp"

namespace cohort::multihost {

/// A text of several workers is written once, because it may be long.
void wire_writer::shared(const std::shared_ptr<const std::string>& value) {
    const auto [at, is_new] = shared_.emplace(value.get(), shared_.size());
    to_.unsigned_integer(at->second);
    if (is_new)
        text(*value);
}

void wire_reader::shared(std::shared_ptr<const std::string>& value) {
    std::size_t which = 0;
    number(which, 0, shared_.size());
    if (which == shared_.size()) {
        std::string came;
        text(came);
        shared_.push_back(std::make_shared<const std::string>(std::move(came)));
    }
    value = shared_[which];
}

void wire_reader::real(double& value, double lowest, double highest) {
    const double found = from_.number();
    if (!(found >= lowest && found <= highest))
        throw unreadable(fmt::format("{} is not within {} and {}", found, lowest, highest));
    value = found;
}

void wire_reader::span(duration& value) {
    std::int64_t count = 0;
    number(count, 0);
    value = std::chrono::nanoseconds(count);
}

void wire_reader::moment(far_clock& value) {
    std::int64_t count = 0;
    number(count, 0, latest_far_clock.count());
    value = far_clock(count);
}

void wire_reader::text(std::string& value, std::size_t most) {
    const auto found = from_.binary("a text");
    if (found.size() > most)
        throw unreadable(fmt::format("a text of {} bytes is longer than {}", found.size(), most));
    value.assign(reinterpret_cast<const char*>(found.data()), found.size());
}

void wire_reader::word(std::string& value) {
    text(value);
    if (value.find('\0') != std::string::npos)
        throw unreadable("there is a NUL in a text");
}

void wire_reader::bytes(std::vector<std::byte>& value, std::size_t most) {
    const auto found = from_.binary("bytes");
    if (found.size() > most)
        throw unreadable(fmt::format("{} bytes are more than {}", found.size(), most));
    value.assign(found.begin(), found.end());
}

std::size_t wire_reader::size_of_list(std::size_t most) {
    const auto size = from_.array();
    if (size > most)
        throw unreadable(fmt::format("a list of {} is longer than {}", size, most));
    return size;
}

}  // namespace cohort::multihost
