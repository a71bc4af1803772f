// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "hosts/link/bodies.hpp"
#include "hosts/link/round_trips.hpp"

#include <chrono>
#include <cstdint>
#include <optional>

namespace cohort::multihost {

struct lease_rules {
    duration beat_period = std::chrono::seconds(1);
    duration host_timeout = std::chrono::seconds(10);
    bool is_in_step = false;       // beats are due at the same times as those of all such leases
    bool answers_at_once = false;  // a beat is not held until one is due
};

/// What the owner of a lease must now do.
enum class lease_action {
    wait,       // nothing, until lease::deadline()
    send_beat,  // lease::make_beat() is its body
    read,       // all that can be read without waiting, then has_read()
    end,        // the other end is lost; comes once
};

/// Whether the other end of a link still lives: each end sends a beat when it has sent nothing for
/// a period. No clock: `now` is a parameter.
///
/// Silence for host_timeout ends the lease after one more look at what has come. Time for which
/// this end itself did not run is no silence of the other's: after a machine was suspended both
/// ends go on, although each finds its deadline passed and nothing to read. next() knows of it
/// because it is called late then.
class lease {
public:
    lease(const lease_rules& rules, time_point now) noexcept
        : rules_(rules), heard_(now), sent_(now), beat_(now) {}

    void set_host_timeout(duration timeout) noexcept { rules_.host_timeout = timeout; }

    /// A frame of any kind was sent.
    void sent(time_point now) noexcept { sent_ = now; }
    /// Something has come: also a part of a frame, because a large one may take a slow link longer
    /// than host_timeout.
    void received(time_point now) noexcept;
    void received_beat(const beat& b, time_point now) noexcept;

    /// To be called at the deadline, and again until it says `wait`.
    lease_action next(time_point now) noexcept;
    /// The body of a beat that is sent now.
    beat make_beat(time_point now) noexcept;
    /// The answer to lease_action::read, after received() if there was something to read.
    void has_read() noexcept;

    /// When next() must be called. Empty: has_read() is awaited, or the lease has ended.
    std::optional<time_point> deadline() const noexcept;
    bool has_ended() const noexcept { return state_ >= state::over; }
    /// When the other end was last known to live.
    time_point last_heard() const noexcept { return heard_; }
    const round_trips& trips() const noexcept { return trips_; }

private:
    enum class state {
        listening,
        reading,  // has_read() is awaited, and decides
        over,
        told,
    };

    time_point period_after(time_point when) const noexcept;
    time_point beat_due() const noexcept;
    time_point silence_due() const noexcept;

    lease_rules rules_;
    state state_ = state::listening;
    time_point heard_;
    time_point sent_;     // the last frame
    time_point beat_;     // when the next beat is due that asks for a round trip
    duration missed_{0};  // since heard_: for how long this end did not run
    std::uint64_t to_answer_ = 0;  // number of the other end's last beat, 0: it is answered
    time_point to_answer_came_{};
    std::optional<time_point> answer_;  // when the answer is due
    round_trips trips_;
};

}  // namespace cohort::multihost
