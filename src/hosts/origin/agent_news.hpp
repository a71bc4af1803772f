// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "hosts/connection/arrival.hpp"
#include "hosts/link/frame_reader.hpp"
#include "hosts/values/end_bytes.hpp"
#include "hosts/values/messages.hpp"

namespace cohort::multihost {

/// What an agent has said of a group. Of the values that of its kind is there, or why it could not
/// be read.
struct agent_news {
    frame_kind kind{};
    read_value<started_workers> started;
    read_value<detail::start_failure> not_started;
    read_value<begun_worker> begun;
    read_value<used_resources> used;
    read_value<detail::ended_worker> ended;
};

/// For what has come then.
end_reader_place place_at(end_reader_place of_part, const arrival& when);

/// Takes as long as the workers like that it tells of, so it is for a thread that may wait.
/// @throws std::bad_alloc
agent_news read_news(const message& said, const end_reader_place& place);

}  // namespace cohort::multihost
