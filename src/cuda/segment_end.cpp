// SPDX-License-Identifier: BSL-1.0
#include "cuda/segment_end.hpp"

#include "cuda/work.hpp"
#include "sys/leaked.hpp"

#include <cohort/sharing.hpp>

#include <cerrno>
#include <exception>
#include <mutex>
#include <utility>

namespace cohort::device {
namespace {

struct kept_remains {
    mutable std::mutex mutex;
    mutable std::vector<remains> all;  // under the mutex
};

const kept_remains& kept() {
    return sys::leaked([] { return kept_remains(); });
}

/// @return false: a stream captures, so the devices can't be waited for
bool await(const remains& left) {
    try {
        for (const int device : left.users)
            await_device(
                operation(session::open(), device, array_of(left.described.bytes, device)));
    } catch (const sharing_error& e) {
        return e.code().value() != EBUSY;
    } catch (const std::exception&) {
        // Nobody can be told. The driver ends with the process, before static arrays do.
    }
    return true;
}

void close(const remains& left) {
    if (left.opened == 0)
        return;
    try {
        const operation with(session::open(), left.users.back(), "end of a shared array");
        (void)with.calls().close_ipc_handle(left.opened);
    } catch (const std::exception&) {
        // As above.
    }
}

void end_or_keep(remains left) {
    if (await(left))
        return close(left);
    const std::lock_guard guard(kept().mutex);
    kept().all.push_back(std::move(left));
}

}  // namespace

void end_kept() {
    std::vector<remains> all;
    {
        const std::lock_guard guard(kept().mutex);
        all.swap(kept().all);
    }
    for (auto& left : all)
        end_or_keep(std::move(left));
}

void end(remains left) {
    end_kept();
    end_or_keep(std::move(left));
}

}  // namespace cohort::device
