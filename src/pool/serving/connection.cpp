// SPDX-License-Identifier: BSL-1.0
#include "pool/serving/connection.hpp"

#include "pool/wire/channel_of.hpp"

#include <cohort/errors.hpp>

#include <chrono>
#include <utility>

#include <poll.h>

namespace cohort::pools {

connection::connection(detail::attachment socket) : socket_(std::move(socket)) {}

std::optional<received_frame> connection::receive() {
    const auto on = channel_of(*socket_);
    share::incoming into;
    share::step step;
    do
        step = share::receive(on, into, share::may_wait::yes);
    while (step == share::step::must_wait);
    if (step == share::step::over)
        return std::nullopt;
    const auto name = into.messages.empty() ? std::nullopt : name_of(into.messages.front().type);
    if (!name || into.messages.size() > 1)
        throw codec_error("cohort: the pool has sent a packet of an unknown kind");
    return received_frame{*name, std::move(into.messages.front())};
}

void connection::load(received_frame& frame) {
    if (!share::load(frame.message, channel_of(*socket_).make))
        share::refuse_for_now();
}

bool connection::send(const frame_name& name, std::span<const std::byte> payload,
                      std::vector<detail::attachment> attachments) {
    const auto on = channel_of(*socket_);
    share::outgoing packet({type_of(name), nullptr, payload, std::move(attachments)}, on);
    for (;;) {
        const auto step = packet.send(on);
        if (step == share::step::done || step == share::step::over)
            return step == share::step::done;
        pollfd room{*socket_, POLLOUT, 0};
        // Nothing shows when the user has fewer descriptors in flight.
        const bool has_event = step == share::step::must_wait;
        (void)::poll(&room, has_event ? 1 : 0,
                     static_cast<int>(has_event ? -1 : share::look_again_after.count()));
    }
}

}  // namespace cohort::pools
