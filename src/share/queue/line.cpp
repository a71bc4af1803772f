// SPDX-License-Identifier: BSL-1.0
#include "share/queue/line.hpp"

#include "base/files/dispose.hpp"
#include "loop/engine/engine.hpp"

namespace cohort::share {

waiter::~waiter() {
    if (message && message->is_slow_to_free() && loop::engine::is_this_thread())
        base::dispose(std::shared_ptr<const void>(std::move(message)));
}

}  // namespace cohort::share
