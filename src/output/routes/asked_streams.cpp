// SPDX-License-Identifier: BSL-1.0
#include "output/routes/asked_streams.hpp"

#include <algorithm>
#include <utility>

#include <unistd.h>

namespace cohort::output {

namespace {

/// How a sink for which text goes to the origin takes it; empty: it is none, or shows nothing.
struct far_sink {
    cohort::when_full full;
    detail::queue_buffer buffer;
};

std::optional<far_sink> far_sink_of(const detail::sink& sink, int index) {
    if (const auto* lines = std::get_if<detail::lines_sink>(&sink))
        return far_sink{lines->full, lines->buffer};
    if (const auto* chunks = std::get_if<detail::chunks_sink>(&sink))
        return far_sink{chunks->full, chunks->buffer};
    if (const auto* console = std::get_if<detail::console_sink>(&sink);
        console != nullptr && shows(*console, index))
        return far_sink{console->full, {}};
    return std::nullopt;
}

bool is_far(const detail::sink& sink) {
    return std::holds_alternative<detail::lines_sink>(sink) ||
           std::holds_alternative<detail::chunks_sink>(sink) ||
           std::holds_alternative<detail::console_sink>(sink);
}

bool is_inherited(const asked_streams& asked, int number) {
    const auto& sinks = asked.sinks[number];
    return !asked.given[number] && (sinks.empty() || is_one(sinks, detail::inherit_sink()));
}

void leave_hosts_part(int index, std::vector<detail::sink>& sinks) {
    std::optional<far_sink> all;
    for (const auto& sink : sinks)
        if (const auto one = far_sink_of(sink, index)) {
            if (!all) {
                all = one;
                continue;
            }
            all->full = one->full == when_full::block ? when_full::block : all->full;
            all->buffer.bytes = std::max(all->buffer.bytes, one->buffer.bytes);
            all->buffer.is_chosen = all->buffer.is_chosen && one->buffer.is_chosen;
        }
    const bool had_one = std::erase_if(sinks, is_far) > 0;
    if (all)
        sinks.emplace_back(detail::chunks_sink{all->buffer, all->full});
    else if (had_one && sinks.empty())
        sinks.emplace_back(detail::discard_sink());
}

void leave_origins_part(int index, std::vector<detail::sink>& sinks) {
    if (is_one(sinks, detail::merge_sink()))
        return;
    std::erase_if(sinks, [&](const detail::sink& sink) { return !far_sink_of(sink, index); });
    if (sinks.empty())
        sinks.emplace_back(detail::discard_sink());
}

}  // namespace

asked_streams asked_of(const detail::placement& where) {
    asked_streams asked;
    for (const auto& [number, fd] : where.descriptors)
        if (number <= STDERR_FILENO)
            asked.given[number] = *fd;
    for (const auto& [number, sinks] : where.sinks)
        asked.sinks[number] = sinks;
    asked.input = where.input;
    return asked;
}

bool shows(const detail::console_sink& console, int index) {
    return (!console.only || console.only->contains(index)) &&
           (!console.filter || (*console.filter)(index));
}

void leave_part_of(routes_of machine, int index, asked_streams& asked) {
    for (const int number : {STDOUT_FILENO, STDERR_FILENO}) {
        auto& sinks = asked.sinks[number];
        if (machine == routes_of::origin)
            leave_origins_part(index, sinks);
        else if (machine == routes_of::host && is_inherited(asked, number))
            sinks = {detail::console_sink()};
        else if (machine == routes_of::host)
            leave_hosts_part(index, sinks);
    }
    const bool is_fed = asked.input && std::holds_alternative<detail::feed_input>(*asked.input);
    if (machine == routes_of::origin && !is_fed)
        asked.input.reset();
}

}  // namespace cohort::output
