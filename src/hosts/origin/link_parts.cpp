// SPDX-License-Identifier: BSL-1.0
#include "hosts/origin/link_parts.hpp"

#include "base/values/quantity.hpp"

#include <algorithm>
#include <chrono>

namespace cohort::multihost {

link_loss loss_of(const connection_end& how, duration host_timeout) {
    link_loss loss;
    loss.broken = how.how;
    switch (how.why) {
    case connection_end::kind::left:
        loss.how = part_event::kind::left;
        loss.why = "its agent has ended";
        break;
    case connection_end::kind::cut:
        loss.how = part_event::kind::cut;
        loss.why = "its link has ended";
        break;
    case connection_end::kind::no_memory:
        loss.how = part_event::kind::cut;
        loss.why = no_memory_here;
        break;
    case connection_end::kind::silent:
        loss.how = part_event::kind::silent;
        loss.why = "no beat for " + base::duration_text(host_timeout);
        break;
    case connection_end::kind::broken:
        loss.how = part_event::kind::broken;
        loss.why = std::string("it broke the protocol: ") + to_string(*how.how);
        break;
    }
    return loss;
}

std::optional<std::error_code> code_of(const connection_end& how) {
    switch (how.why) {
    case connection_end::kind::broken:
        return std::make_error_code(std::errc::protocol_error);
    case connection_end::kind::silent:
        return std::make_error_code(std::errc::timed_out);
    case connection_end::kind::no_memory:
        return std::make_error_code(std::errc::not_enough_memory);
    default:
        return std::nullopt;
    }
}

void link_parts::open(std::uint32_t group, const std::shared_ptr<part_listener>& part,
                      std::size_t largest) {
    parts_[group] = part;
    runtime_.output().post([self = shared_from_this(), group, part, largest] {
        self->heard_[group] = part;
        self->link_->take_messages_of(largest);
    });
}

void link_parts::close(std::uint32_t group) {
    parts_.erase(group);
    runtime_.output().post([self = shared_from_this(), group] { self->heard_.erase(group); });
}

duration link_parts::lose(const link_loss& how) {
    const auto parts = parts_;  // one that is lost closes itself
    duration longest{0};
    for (const auto& [group, each] : parts)
        if (const auto part = each.lock()) {
            longest = std::max(longest, part->longest_stop());
            part->link_lost(how);
        }
    return longest;
}

void link_parts::say(const frame_name& name, std::vector<std::byte> body) {
    runtime_.output().post([link = link_, name, body = std::move(body)]() mutable {
        link->send(name, std::move(body));
    });
}

void link_parts::refuse(breach how) {
    runtime_.output().post([link = link_, how] { link->refuse(how); });
}

void link_parts::hear(message what) {
    const auto found = heard_.find(what.name.group);
    const auto part = found == heard_.end() ? nullptr : found->second.lock();
    if (!part)
        return;
    arrival when{std::chrono::steady_clock::now(), std::chrono::system_clock::now()};
    const auto& trips = link_->times().trips();
    when.under_way = trips.smallest().value_or(duration{0}) / 2;
    when.offset = trips.offset();
    part->heard(std::move(what), when);
}

}  // namespace cohort::multihost
