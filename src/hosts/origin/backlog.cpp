// SPDX-License-Identifier: BSL-1.0
#include "hosts/origin/backlog.hpp"

namespace cohort::multihost {
namespace {

constexpr std::size_t most_unread = std::size_t{64} << 20;  // besides the last message
/// What a message counts besides its bytes.
constexpr std::size_t cost_of_message = 1'024;

}  // namespace

void backlog::came(std::size_t bytes) {
    const auto added = bytes + cost_of_message;
    if (cost_.fetch_add(added) + added <= most_unread || holds_link_.exchange(true))
        return;
    link_->parts().link().stop_reading();
    look();  // all may have been taken before this knew that it holds the link
}

void backlog::taken(std::size_t bytes) {
    cost_ -= bytes + cost_of_message;
    look();
}

void backlog::look() {
    if (cost_ <= most_unread / 2 && holds_link_.exchange(false))
        runtime_.output().post([link = link_] { link->parts().link().read_on(); });
}

}  // namespace cohort::multihost
