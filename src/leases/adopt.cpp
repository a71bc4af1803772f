// SPDX-License-Identifier: BSL-1.0
#include "cuda/segment.hpp"
#include "leases/lease.hpp"

#include <cohort/detail/device_array.hpp>

#include <atomic>
#include <memory>
#include <utility>

namespace cohort::detail::inline v0_1 {

device_array adopt_device_memory(void* data, std::size_t elements, std::size_t element_bytes,
                                 std::function<void()> release) {
    const std::size_t shape[] = {elements};
    strided layout(shape, element_bytes);
    if (elements == 0) {
        device_array none(nullptr, std::move(layout), 0);
        release();
        return none;
    }
    // A lease ends also if what follows throws, and must not release then.
    const auto is_adopted = std::make_shared<std::atomic<bool>>(false);
    auto lease = leases::lease::make([is_adopted, release = std::move(release)] {
        if (*is_adopted)
            release();
    });
    auto memory = device::segment::adopt(data, elements * element_bytes, std::move(lease));
    const auto offset = static_cast<std::byte*>(data) - memory->data();
    device_array made(std::move(memory), std::move(layout), static_cast<std::size_t>(offset));
    *is_adopted = true;
    return made;
}

}  // namespace cohort::detail::inline v0_1
