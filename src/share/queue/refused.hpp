// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "share/queue/end.hpp"

namespace cohort::share {

/// What an end receives. The descriptors of a packet that was none are closed in the background.
/// While many of an end's are not closed, it receives nothing more: whoever floods it with such
/// packets would else fill the table of this process, because closing takes longer than receiving.
struct incoming_of : incoming {
    explicit incoming_of(end& by) noexcept : of(by) {}
    incoming_of(const incoming_of&) = delete;
    incoming_of& operator=(const incoming_of&) = delete;
    ~incoming_of();
    end& of;
};

/// Whether the end must receive nothing now. Any thread.
bool has_many_unclosed(const end::state& state) noexcept;
/// Whether the end must receive nothing now. If so, those in line are served when enough is closed.
/// The state is locked.
bool await_closes(end::state& state) noexcept;

}  // namespace cohort::share
