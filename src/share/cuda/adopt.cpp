// SPDX-License-Identifier: BSL-1.0
#include "share/arrays/place.hpp"
#include "share/cuda/lease.hpp"
#include "share/cuda/segment_table.hpp"

#include <cohort/detail/device_array.hpp>

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

namespace cohort::detail::inline v0_1 {
namespace {

/// What is to be done when the lease of adopted memory ends.
class adoption {
public:
    explicit adoption(std::function<void()> release) : release_(std::move(release)) {}

    /// From now on the memory is to be released. Without memory there is only the function to call.
    void begin(const std::shared_ptr<share::device::segment>& memory) {
        if (memory) {
            share::device::segment_table::own().note_adopted(*memory);
            number_ = memory->described().number;
            device_ = memory->device();
        }
        begun_.store(true, std::memory_order_release);
    }

    /// A lease ends also if its memory could not be adopted, and must not release then.
    void end() {
        if (!begun_.load(std::memory_order_acquire))
            return;
        std::optional<share::device::operation>
            current;  // memory of cuMemAlloc is freed in a context
        if (device_) {
            share::device::segment_table::own().forget_adopted(number_);
            try {
                current.emplace(share::device::session::open(), *device_, "end of adopted memory");
            } catch (const std::exception&) {
                // `release` is called in any case.
            }
        }
        if (release_)
            release_();
    }

private:
    const std::function<void()> release_;
    std::uint64_t number_ = 0;
    std::optional<int> device_;
    std::atomic<bool> begun_ = false;
};

}  // namespace

device_array adopt_device_memory(void* data, std::size_t elements, std::size_t element_bytes,
                                 std::size_t alignment, std::function<void()> release) {
    share::require_alignment(static_cast<std::byte*>(data), alignment);
    const std::size_t shape[] = {elements};
    strided layout(shape, element_bytes);
    const auto adopted = std::make_shared<adoption>(std::move(release));
    auto lease = share::lease::make([adopted] { adopted->end(); });
    std::shared_ptr<share::device::segment> memory;
    std::size_t offset = 0;
    if (elements != 0) {
        memory = share::device::segment::adopt(data, elements * element_bytes, std::move(lease));
        offset = static_cast<std::size_t>(static_cast<std::byte*>(data) - memory->data());
    }
    device_array made(memory, std::move(layout), offset);
    adopted->begin(memory);
    return made;
}

}  // namespace cohort::detail::inline v0_1
