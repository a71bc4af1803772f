// SPDX-License-Identifier: BSL-1.0
#include "group/services/services.hpp"

#include "protocol/registry/registry.hpp"
#include "worker/signals/signals.hpp"

#include <cohort/worker.hpp>

#include <atomic>
#include <memory>
#include <utility>

namespace cohort::groups {

namespace {

std::atomic<services*> own_services{nullptr};

void stop_groups_by_stop_signal(loop::runtime& runtime) {
    worker::on_stop_signal([&runtime](worker::afterwards then) {
        // No handler runs any more, as at exit, because one that sees its group stopped could end
        // this worker before the signal does.
        if (then == worker::afterwards::ends_by_signal)
            runtime.call_no_more_handlers();
        runtime.stop_all_and_wait(protocol::grace_period() / 2);
    });
}

}  // namespace

services::services(loop::runtime& runtime)
    : runtime_(runtime), forkserver_manager_([&runtime](base::unique_fd pidfd, pid_t leader) {
          runtime.adopt(std::move(pidfd), leader);
      }),
      guardian_([&runtime](base::unique_fd pidfd) { runtime.adopt(std::move(pidfd), 0); }) {}

services& services::of(loop::runtime& runtime) {
    auto* seen = own_services.load(std::memory_order_acquire);
    while (!seen || &seen->runtime_ != &runtime) {
        // A forked copy leaks its parent's object, whose mutexes may be locked.
        std::unique_ptr<services> fresh(new services(runtime));
        if (this_worker::active())
            stop_groups_by_stop_signal(runtime);
        if (own_services.compare_exchange_strong(seen, fresh.get()))
            seen = fresh.release();
    }
    return *seen;
}

}  // namespace cohort::groups
