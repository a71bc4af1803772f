// SPDX-License-Identifier: BSL-1.0
// Events: the state of an eventfd.
#include "base/sys/descriptors.hpp"
#include "loop/waits/waiters.hpp"
#include "share/sync/wakeup.hpp"

#include <cohort/detail/encoder.hpp>
#include <cohort/detail/sync_handles.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include <poll.h>

namespace cohort::detail::inline v0_1 {

event_handle::event_handle() : wakeup_(share::wakeup::make(share::wakeup::kind::state)) {}

void event_handle::set() const { wakeup_->set(); }
void event_handle::clear() const { wakeup_->clear(); }

bool event_handle::is_set() const { return base::is_readable(*wakeup_->descriptor()); }

bool event_handle::wait(const patience& how_long) const {
    const auto descriptor = wakeup_->descriptor();
    const loop::stop_event stop(how_long.stop);
    for (;;) {
        std::array events{pollfd{*descriptor, POLLIN, 0}, pollfd{stop.descriptor(), POLLIN, 0}};
        (void)loop::poll_until(events, how_long.deadline);
        if ((events[0].revents & POLLIN) != 0)
            return true;
        if (how_long.stop.stop_requested())
            return false;
        if (how_long.deadline && std::chrono::steady_clock::now() >= *how_long.deadline)
            return false;
    }
}

shared_item event_handle::item() const {
    return {wakeup_->descriptor(), R"(,"kind":"event"})", {}};
}

void event_handle::write(encoder& to) const {
    to.array(2);
    to.unsigned_integer(to.attach(wakeup_->descriptor()));
    to.unsigned_integer(wakeup_->number());
}

event_handle event_handle::read(decoder& from) {
    from.array(2);
    const auto descriptor = from.descriptor(from.integer_as<std::uint64_t>());
    const auto number = from.integer_as<std::uint64_t>();
    return event_handle(share::wakeup::arrived(share::wakeup::kind::state, number, descriptor));
}

void await_event(const event_handle& event, const receiver& to) {
    const auto& at = event.waits_at();
    // Looked at while the wakeup is locked, which keeps its descriptor open.
    const int fd = *at->descriptor();
    at->wait({to,
              [fd] {
                  return base::is_readable(fd) ? std::optional<completion>(std::in_place)
                                               : std::nullopt;
              },
              {}});
}

void cancel_wait(const std::weak_ptr<void>& at, operation_id id) noexcept {
    if (const auto still = std::static_pointer_cast<share::wakeup>(at.lock()))
        still->cancel(id);
}

}  // namespace cohort::detail::inline v0_1
