// SPDX-License-Identifier: BSL-1.0
#include "share/queue/passing.hpp"

#include "base/sys/socket.hpp"

#include <cohort/errors.hpp>

namespace cohort::share {
namespace {

// Descriptions may come from any process. Receivers reserve room for the largest packet.
constexpr std::uint64_t largest_inlined_ever = std::uint64_t{16} << 20;

detail::attachment descriptor(detail::decoder& from) {
    auto found = from.descriptor(from.integer_as<std::uint64_t>());
    if (!found)
        throw codec_error("a queue: its descriptor is missing");
    return found;
}

}  // namespace

void note_sharing(end& which) {
    which.give_away();
    const auto queue = which.queue.lock();
    const auto guard = lock_ends();
    if (queue)
        queue->roles.share();
}

void write_end(detail::encoder& to, const end::open_descriptors& descriptors) {
    to.unsigned_integer(to.attach(descriptors.socket));
    if (descriptors.slots_file)
        to.unsigned_integer(to.attach(descriptors.slots_file));
    else
        to.null();
}

void write_description(detail::encoder& to, const end::description& about) {
    to.unsigned_integer(about.type);
    to.unsigned_integer(about.capacity);
    to.unsigned_integer(about.largest_inlined);
    to.boolean(about.carries);
}

end::description read_description(detail::decoder& from, const end::description& expected) {
    end::description about = expected;
    about.type = from.integer_as<std::uint64_t>();
    about.capacity = from.integer_as<std::uint64_t>();
    const auto inlined = from.integer_as<std::uint64_t>();
    about.carries = from.boolean();
    if (about.type != expected.type)
        throw codec_error("a queue of values of another type");
    if (inlined > largest_inlined_ever)
        throw codec_error("a queue: its packets are too large");
    about.largest_inlined = static_cast<std::size_t>(inlined);
    return about;
}

std::shared_ptr<end> read_end(detail::decoder& from, end::side which,
                              const end::description& about) {
    const auto socket = descriptor(from);
    const auto slots = from.take_null() ? nullptr : descriptor(from);
    if (!base::is_packet_socket(*socket) || (slots != nullptr) != (about.capacity > 0))
        throw codec_error("a queue: its descriptors are none of a queue");
    base::report_nothing(*socket);
    auto found = end_of(which, socket, slots, about);
    found->give_away();
    return found;
}

}  // namespace cohort::share
