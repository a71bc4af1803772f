// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/sys/fork_mark.hpp"
#include "share/queue/end.hpp"

#include <cohort/detail/encoder.hpp>

#include <cstdint>
#include <memory>

// How ends of queues are described to other processes.
namespace cohort::share {

/// Both ends of a queue, and which of them this process uses. Only under lock_ends().
class both_ends {
public:
    std::shared_ptr<end> reader;
    std::shared_ptr<end> writer;
    share::roles roles;
    std::uint64_t generation = base::process_generation();
};

/// Notes that an end is passed to another process.
void note_sharing(end& which);

void write_end(detail::encoder& to, const end::open_descriptors& descriptors);
void write_description(detail::encoder& to, const end::description& about);

/// @throws codec_error  the queue's values are of another type; it is no description
end::description read_description(detail::decoder& from, const end::description& expected);
/// @throws codec_error  its descriptors are none of such an end
std::shared_ptr<end> read_end(detail::decoder& from, end::side which,
                              const end::description& about);

}  // namespace cohort::share
