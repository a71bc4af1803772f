// SPDX-License-Identifier: BSL-1.0
#include "share/cuda/segment_end.hpp"

#include "base/sys/leaked.hpp"
#include "share/cuda/work.hpp"

#include <cohort/errors.hpp>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <utility>

namespace cohort::share::device {
namespace {

struct kept_remains {
    mutable std::mutex mutex;
    mutable std::vector<remains> all;  // under the mutex
};

const kept_remains& kept() {
    return base::leaked([] { return kept_remains(); });
}

/// Makes a call for a device. Nobody can be given its errors.
/// @return false: a stream captures, so the device can't be waited for
template <class Call>
bool attempt(const remains& left, int device, Call call) {
    try {
        call(operation(session::open(), device, array_of(left.described.bytes, device)));
    } catch (const sharing_error& e) {
        return e.code().value() != EBUSY;
    }
    return true;
}

void end_or_keep(remains left) {
    const auto await = [&left](int device) { return attempt(left, device, &await_device); };
    if (!std::ranges::all_of(left.users, await)) {
        const std::lock_guard guard(kept().mutex);
        kept().all.push_back(std::move(left));
    } else if (left.opened != 0) {
        (void)attempt(left, left.users.back(), [&left](const operation& with) {
            (void)with.calls().close_ipc_handle(left.opened);
        });
    }
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

}  // namespace cohort::share::device
