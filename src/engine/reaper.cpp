// SPDX-License-Identifier: BSL-1.0
#include "engine/reaper.hpp"

#include "sys/pidfd.hpp"
#include "sys/tiers.hpp"

#include <algorithm>
#include <utility>

namespace cohort::engine {

namespace {
constexpr std::chrono::milliseconds first_back_off{1};
constexpr std::chrono::milliseconds longest_back_off{100};
}  // namespace

struct reaper::vigil {
    int pidfd;
    task seen;
    std::function<void(const reaped&)> then;
    std::chrono::milliseconds back_off = first_back_off;
};

void reaper::watch(int pidfd, task seen, std::function<void(const reaped&)> then) {
    auto v = std::make_shared<vigil>();
    v->pidfd = pidfd;
    v->seen = std::move(seen);
    v->then = std::move(then);
    keep(v);
}

void reaper::keep(const std::shared_ptr<vigil>& v) {
    engine_.watch(v->pidfd, [this, v](int error) {
        if (error)  // no memory for it, say: nobody who was started is ever forgotten
            return later(v, &reaper::keep);
        if (v->seen)
            v->seen();
        look(v);
    });
}

void reaper::later(const std::shared_ptr<vigil>& v,
                   void (reaper::*again)(const std::shared_ptr<vigil>&)) {
    engine_.timer().at(engine_.now() + v->back_off, [this, v, again] { (this->*again)(v); });
    v->back_off = std::min(2 * v->back_off, longest_back_off);
}

void reaper::look(const std::shared_ptr<vigil>& v) {
    reaped end;
    switch (sys::reap(v->pidfd, end.status, end.usage)) {
    case sys::reap_result::reaped:
        break;
    case sys::reap_result::not_yet:
        // Readable was only a hint: a tracer (or LeakSanitizer) holds the zombie. The pidfd stays
        // readable, so watching it again would spin: 632,279 empty waits in 340 ms were seen.
        return later(v, &reaper::look);
    case sys::reap_result::lost:
    case sys::reap_result::error:
        if (!sys::current_tiers().pidfd_info.best)
            break;
        if (const auto status = sys::stolen_status(v->pidfd))
            end.status = *status;
        else if (v->back_off < longest_back_off)
            // ECHILD comes a little before the thief has released the child, and only that notes
            // the status: 1 of 3,200 was missed.
            return later(v, &reaper::look);
        break;
    }
    v->then(end);
}

void reaper::adopt(sys::unique_fd pidfd, task then) {
    auto owned = std::make_shared<sys::unique_fd>(std::move(pidfd));
    watch(owned->get(), {}, [owned, then = std::move(then)](const reaped&) {
        owned->reset();
        if (then)
            then();
    });
}

void reaper::adopt_group(sys::unique_fd pidfd, pid_t leader) {
    auto owned = std::make_shared<sys::unique_fd>(std::move(pidfd));
    watch(
        owned->get(), [owned, leader] { sweep(owned->get(), leader); },
        [owned](const reaped&) { owned->reset(); });
}

void sweep(int pidfd, pid_t leader) noexcept {
    if (sys::current_tiers().pidfd_group.best)
        (void)sys::send_signal_to_group(pidfd, SIGKILL);
    else if (sys::holds_zombie(pidfd))
        ::kill(-leader, SIGKILL);  // the zombie keeps the group's number from being given away
}

}  // namespace cohort::engine
