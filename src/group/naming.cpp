// SPDX-License-Identifier: BSL-1.0
#include "group/naming.hpp"

#include "record/traceback.hpp"

#include <algorithm>
#include <vector>

namespace cohort::group_room {

namespace {

/// All stacks of a worker's end, one after the other.
template <class Outcome, class Visit>
void for_each_stack(Outcome& worker, Visit visit) {
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

}  // namespace

bool needs_names(const outcome& worker) noexcept {
    bool found = false;
    for_each_stack(worker, [&](const std::vector<stack_frame>& frames) {
        found = found || std::ranges::any_of(frames, &std::string::empty, &stack_frame::function);
    });
    return found;
}

void name_frames(outcome& worker, trace::names& names) noexcept {
    try {
        for_each_stack(worker, [&](std::vector<stack_frame>& frames) { names.give_to(frames); });
    } catch (...) {
        // The addresses must do.
    }
}

void write_traces(outcome& worker) {
    if (worker.error && (!worker.error->frames.empty() || !worker.error->nested.empty()))
        worker.error->trace = record::traceback_of(*worker.error);
    if (worker.crash)
        worker.crash->trace = record::traceback_of(*worker.crash);
}

}  // namespace cohort::group_room
