// SPDX-License-Identifier: BSL-1.0
#include "share/arrays/place.hpp"

#include "base/files/settings.hpp"
#include "base/sys/leaked.hpp"
#include "share/arrays/arena.hpp"
#include "share/cuda/lease.hpp"
#include "share/cuda/segment.hpp"
#include "share/cuda/session.hpp"

#include <cohort/cuda.hpp>
#include <cohort/detail/device_array.hpp>
#include <cohort/detail/encoder.hpp>
#include <cohort/errors.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
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

namespace cohort {
namespace share::device {
namespace {

constexpr std::size_t tried_bytes = std::size_t{2} << 20;

/// Hands memory from this process to itself as to another one. Drivers exist that say they can do
/// this, and fail.
std::string try_it() {
    try {
        const auto made = segment::make(0, tried_bytes);
        segment_handle sent = made->described();
        sent.number = ~sent.number;  // else the segment would be found, and not mapped again
        (void)segment::arrived(sent);
    } catch (const std::exception& e) {
        return e.what();
    }
    return "";
}

std::string why_not() {
    const auto& why = base::leaked([] { return try_it(); });
    if (!why.empty() || session::is_usable())
        return why;
    return try_it();  // says that this is a forked copy
}

}  // namespace

}  // namespace share::device

bool cuda::available() { return share::device::why_not().empty(); }

std::string cuda::why_not() { return share::device::why_not(); }

}  // namespace cohort

namespace cohort::detail::inline v0_1 {

namespace {
constexpr std::size_t step = 256;  // as memory of cudaMalloc is aligned
}

struct device_arena::state {
    explicit state(std::shared_ptr<share::device::segment> made)
        : memory(std::move(made)), space(memory->size(), step) {}

    const std::shared_ptr<share::device::segment> memory;
    share::arena_space space;
};

device_arena::device_arena(int device, std::size_t bytes)
    : state_(std::make_shared<state>(
          share::device::segment::make(device, std::max<std::size_t>(bytes, 1)))) {}

device_array device_arena::take(std::span<const std::size_t> shape, std::size_t element_bytes,
                                std::size_t alignment) const {
    strided layout(shape, element_bytes);
    const std::size_t bytes = layout.size() * element_bytes;
    const std::size_t first = bytes == 0 ? 0 : state_->space.take(bytes, alignment);
    return {state_->memory, std::move(layout), first};
}

namespace {

using share::device::driver::address;

address address_of(const std::byte* data) noexcept { return reinterpret_cast<address>(data); }

share::device::operation operate_on(const share::device::segment& memory) {
    return {share::device::session::open(), memory.device(),
            share::device::array_of(memory.size(), memory.device())};
}

/// Calls `copy` with each run of the array: its address, its distance in an array without gaps, and
/// its size in bytes, and a stream. That is the default one, or one of the library's own while a
/// capture blocks the default one. Then waits for the copies.
template <class Copy>
void copy_runs(const device_array& array, std::size_t element_bytes, Copy copy) {
    if (array.memory() == nullptr)
        return;
    const auto with = operate_on(*array.memory());
    std::optional<share::device::own_stream> own;
    if (share::device::default_stream_is_blocked(with))
        own.emplace(with);
    const share::device::driver::stream stream = own ? own->get() : nullptr;
    std::size_t done = 0;
    array.layout().each_run([&](std::ptrdiff_t first, std::size_t count) {
        const auto* const at = array.data() + first * static_cast<std::ptrdiff_t>(element_bytes);
        copy(with, address_of(at), done, count * element_bytes, stream);
        done += count * element_bytes;
    });
    with.require(with.calls().synchronize_stream, stream);
}

void write_handle(encoder& to, const share::device::segment_handle& handle) {
    to.array(6);
    to.unsigned_integer(handle.number);
    to.binary(handle.device);
    to.unsigned_integer(handle.bytes);
    const auto attach = [&to](const attachment& descriptor) {
        if (descriptor)
            to.unsigned_integer(to.attach(descriptor));
        else
            to.null();
    };
    attach(handle.exported);
    if (handle.ipc)
        to.binary(handle.ipc->bytes);
    else
        to.null();
    attach(handle.lease);
}

share::device::segment_handle read_handle(decoder& from) {
    from.array(6);
    share::device::segment_handle handle;
    handle.number = from.integer_as<std::uint64_t>();
    from.binary_into(handle.device, "the UUID of a device");
    handle.bytes = from.integer_as<std::size_t>();
    const auto detach = [&from]() -> attachment {
        return from.take_null() ? nullptr : from.descriptor(from.integer_as<std::uint64_t>());
    };
    handle.exported = detach();
    if (!from.take_null())
        from.binary_into(handle.ipc.emplace().bytes, "a handle of device memory");
    handle.lease = detach();
    return handle;
}

}  // namespace

device_array::device_array(int device, std::span<const std::size_t> shape,
                           std::size_t element_bytes)
    : layout_(std::make_shared<const strided>(shape, element_bytes)) {
    if (layout_->size() == 0)
        return;
    memory_ = share::device::segment::make(device, layout_->size() * element_bytes);
    data_ = memory_->data();
}

device_array::device_array(std::shared_ptr<share::device::segment> memory, strided layout,
                           std::size_t offset)
    : layout_(std::make_shared<const strided>(std::move(layout))) {
    if (layout_->size() == 0)
        return;
    memory_ = std::move(memory);
    data_ = memory_->data() + offset;
}

const strided& device_array::layout() const noexcept {
    static const strided none;
    return layout_ ? *layout_ : none;
}

int device_array::device() const noexcept { return memory_ ? memory_->device() : -1; }

device_array device_array::with(const strided::view& seen, std::size_t element_bytes) const {
    const auto offset = memory_ ? data_ - memory_->data() : 0;
    const auto further = seen.second * static_cast<std::ptrdiff_t>(element_bytes);
    device_array made(memory_, seen.first, static_cast<std::size_t>(offset + further));
    made.stream_ = stream_;
    return made;
}

device_array device_array::on(int device) const {
    if (memory_)
        memory_->allow(device);
    return *this;
}

device_array device_array::send_after(void* stream) const {
    auto made = *this;
    made.stream_ = stream;
    return made;
}

void device_array::require_size(std::size_t elements, const char* what) const {
    if (elements != layout().size())
        throw std::invalid_argument(fmt::format(
            "cohort: {} of {} elements, the shared array has {}", what, elements, layout().size()));
}

void device_array::copy_from(const std::byte* from, std::size_t elements,
                             std::size_t element_bytes) const {
    require_size(elements, "copy_from");
    copy_runs(*this, element_bytes,
              [from](const auto& with, address at, std::size_t done, std::size_t bytes,
                     share::device::driver::stream by) {
                  with.require(with.calls().copy_from_host, at, from + done, bytes, by);
              });
}

void device_array::copy_to(std::byte* to, std::size_t elements, std::size_t element_bytes) const {
    require_size(elements, "copy_to");
    copy_runs(*this, element_bytes,
              [to](const auto& with, address at, std::size_t done, std::size_t bytes,
                   share::device::driver::stream by) {
                  with.require(with.calls().copy_to_host, to + done, at, bytes, by);
              });
}

device_array device_array::clone(std::size_t element_bytes) const {
    if (!memory_)
        return *this;
    device_array made(device(), layout_->shape(), element_bytes);
    copy_runs(*this, element_bytes,
              [&made](const auto& with, address at, std::size_t done, std::size_t bytes,
                      share::device::driver::stream by) {
                  with.require(with.calls().copy_on_device, address_of(made.data_ + done), at,
                               bytes, by);
              });
    return made;
}

/// What the receiver reads must be there when it reads.
void device_array::await_work() const {
    if (!stream_)
        return memory_->await_work();
    share::device::await_stream(operate_on(*memory_), *stream_);
}

void device_array::write(encoder& to, const std::string& dtype, bool is_const) const {
    if (!valid())
        return to.null();
    to.array(6);
    if (memory_) {
        await_work();
        write_handle(to, memory_->described());
    } else {
        to.null();
    }
    const auto offset = memory_ ? data_ - memory_->data() : 0;
    share::write_place(to, static_cast<std::size_t>(offset), *layout_, dtype);
    to.boolean(is_const);
}

device_array device_array::read(decoder& from, std::size_t element_bytes, std::size_t alignment,
                                const std::string& dtype, bool is_const) {
    if (from.take_null())
        return {};
    from.array(6);
    std::shared_ptr<share::device::segment> memory;
    if (!from.take_null())
        memory = share::device::segment::arrived(read_handle(from));
    const auto place = share::read_place(from, dtype);
    if (from.boolean() && !is_const)
        throw codec_error("the shared array is one of const elements: take a "
                          "cuda::shared_array<const T>");
    auto layout = place.layout(element_bytes, alignment, memory ? memory->size() : 0);
    return device_array(std::move(memory), std::move(layout),
                        static_cast<std::size_t>(place.offset));
}

}  // namespace cohort::detail::inline v0_1
