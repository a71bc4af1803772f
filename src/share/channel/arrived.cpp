// SPDX-License-Identifier: BSL-1.0
#include "share/channel/arrived.hpp"

#include "base/files/carrier.hpp"
#include "base/files/dispose.hpp"
#include "base/sys/descriptors.hpp"
#include "base/sys/socket.hpp"

#include <cohort/errors.hpp>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>

namespace cohort::share {
namespace {

/// Unpacking takes no time, unless another process prevents it.
constexpr std::chrono::seconds longest_unpack{2};

[[noreturn]] void refuse_carrier(const std::string& why) {
    throw codec_error("cohort: descriptors from another process: " + why);
}

}  // namespace

arrived::~arrived() {
    for (auto& descriptor : descriptors)
        base::dispose(std::move(descriptor));
}

bool unpack_all(arrived& with) {
    if (with.packed == 0)
        return true;
    if (with.packed >= base::descriptor_limit())
        refuse_carrier("they are more than this process may have");
    if (!base::is_packet_socket(with.descriptors.back().get()))
        refuse_carrier("what should hold them is no socket of this library's");
    if (!base::has_room_for(with.packed))
        return false;
    std::vector<base::unique_fd> came;
    with.descriptors.reserve(with.descriptors.size() + with.packed);
    const auto error =
        base::unpack_in_time(with.descriptors.back(), with.packed, came, longest_unpack);
    with.packed -= std::min(with.packed, came.size());
    with.descriptors.insert(with.descriptors.end() - 1, std::make_move_iterator(came.begin()),
                            std::make_move_iterator(came.end()));
    if (base::is_shortage(error))
        return false;
    if (error == std::errc::timed_out)
        refuse_carrier("another process keeps them from being unpacked");
    if (error)
        refuse_carrier("they can't be unpacked: " + error.message());
    base::dispose(std::move(with.descriptors.back()));
    with.descriptors.pop_back();
    return true;
}

}  // namespace cohort::share
