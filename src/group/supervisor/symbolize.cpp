// SPDX-License-Identifier: BSL-1.0
#include "group/supervisor/symbolize.hpp"

#include "protocol/record/traceback.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace cohort::groups {

namespace {

// The most frames of one worker that get names: each takes a look into a file, and the worker
// decides how many frames there are.
constexpr std::size_t most_named = 8192;

/// The parts of an outcome that are symbolized.
struct worded_parts {
    std::optional<error_record> error;
    std::optional<crash_record> crash;
    std::vector<activity> at_stop;
};

template <class Record>
std::optional<Record> copy_of(const shared_record<Record>& record) {
    return record ? std::make_optional(*record) : std::nullopt;
}

/// All stacks of a worker's end, one after the other.
template <class Parts, class Visit>
void for_each_stack(Parts& worker, Visit visit) {
    if (worker.error) {
        visit(worker.error->frames);
        for (auto& nested : worker.error->nested)
            visit(nested.frames);
    }
    if (worker.crash)
        visit(worker.crash->frames);
    for (auto& thread : worker.at_stop)
        visit(thread.frames);
}

void name_frames(worded_parts& worker, protocol::names& names) {
    std::size_t left = most_named;
    for_each_stack(worker, [&](std::vector<stack_frame>& frames) {
        if (frames.size() > left)
            return;
        left -= frames.size();
        names.give_to(frames);
    });
}

void write_traces(worded_parts& worker) {
    if (worker.error && (!worker.error->frames.empty() || !worker.error->nested.empty()))
        worker.error->trace = protocol::traceback_of(*worker.error);
    if (worker.crash)
        worker.crash->trace = protocol::traceback_of(*worker.crash);
}

}  // namespace

bool needs_symbols(const outcome& worker) noexcept {
    bool found = worker.error && (!worker.error->frames.empty() || !worker.error->nested.empty());
    for_each_stack(worker, [&](const std::vector<stack_frame>& frames) {
        found = found || std::ranges::any_of(frames, &std::string::empty, &stack_frame::function);
    });
    return found;
}

std::shared_ptr<const outcome> symbolized(const std::shared_ptr<const outcome>& worker,
                                          protocol::names* names) noexcept {
    try {
        worded_parts parts{copy_of(worker->error), copy_of(worker->crash), worker->at_stop};
        if (names)
            name_frames(parts, *names);
        write_traces(parts);
        const auto worded = std::make_shared<outcome>(*worker);
        worded->error = std::move(parts.error);
        worded->crash = std::move(parts.crash);
        worded->at_stop = std::move(parts.at_stop);
        return worded;
    } catch (...) {
        return worker;  // no memory: the outcome keeps the message and the addresses
    }
}

}  // namespace cohort::groups
