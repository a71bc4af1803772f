// SPDX-License-Identifier: BSL-1.0
#include "base/files/carrier.hpp"

#include "base/sys/error.hpp"
#include "base/sys/socket.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include <fcntl.h>

namespace cohort::base {

base::unique_fd pack(std::span<const int> descriptors, std::error_code& error) noexcept {
    base::unique_fd carrier;
    base::unique_fd entrance;
    error = base::make_socket_pair(carrier, entrance);
    // A full socket must be an error, because nobody reads it meanwhile.
    if (!error && ::fcntl(entrance.get(), F_SETFL, O_NONBLOCK) != 0)
        error = base::last_error();
    const std::byte one{};
    while (!error && !descriptors.empty()) {
        const auto part = descriptors.first(std::min(descriptors.size(), base::most_descriptors));
        error = base::send_message(entrance.get(), std::span(&one, 1), part);
        descriptors = descriptors.subspan(part.size());
    }
    return error ? base::unique_fd() : std::move(carrier);
}

std::error_code unpack(int carrier, std::size_t count, std::vector<base::unique_fd>& descriptors) {
    base::tell_nothing(carrier);
    const std::size_t wanted = descriptors.size() + count;
    std::array<std::byte, 1> one;
    std::size_t length = 1;
    std::vector<base::unique_fd> part;
    while (descriptors.size() < wanted) {
        // What there is no room for stays inside.
        const auto error = base::receive_message(carrier, one, length, part, base::waiting::peek);
        const bool is_empty = error == std::errc::resource_unavailable_try_again;
        if (error && !is_empty)
            return error;
        if (is_empty || length == 0 || part.empty())
            return std::make_error_code(std::errc::protocol_error);
        base::drop_message(carrier);
        std::move(part.begin(), part.end(), std::back_inserter(descriptors));
    }
    return {};
}

}  // namespace cohort::base
