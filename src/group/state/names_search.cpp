// SPDX-License-Identifier: BSL-1.0
#include "group/state/names_search.hpp"

#include "base/files/named_file.hpp"
#include "base/files/settings.hpp"
#include "base/files/sweeper.hpp"

#include <utility>

namespace cohort::groups {
namespace {

void remove_unused_names() {
    const auto done = base::sweep(base::prefix_of_session(), base::few_entries);
    base::names_sweeper().sweep_left();
    if (!done.is_complete)
        base::names_sweeper().ask();
}

}  // namespace

void names_search::begin(const std::shared_ptr<const void>& group,
                         const base::callback<void()>& then) {
    if (!base::may_have_names())
        return;
    if (held_.is_held(reason::names)) {
        again_ = true;  // one search serves all workers that have ended before it
        return;
    }
    held_.hold(reason::names);
    runtime_.sweeping().run(remove_unused_names, [this, group, then] {
        held_.release(reason::names);
        if (std::exchange(again_, false))
            begin(group, then);
        then();
    });
}

}  // namespace cohort::groups
