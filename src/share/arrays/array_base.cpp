// SPDX-License-Identifier: BSL-1.0
#include <cohort/detail/array_base.hpp>

#include "base/text/text.hpp"
#include "share/arrays/place.hpp"

#include <cohort/detail/encoder.hpp>
#include <cohort/errors.hpp>

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

namespace cohort {
namespace detail::inline v0_1 {

namespace {

std::vector<std::ptrdiff_t> in_bytes(std::span<const std::ptrdiff_t> strides, std::size_t bytes) {
    std::vector<std::ptrdiff_t> scaled(strides.begin(), strides.end());
    for (auto& stride : scaled)
        stride *= static_cast<std::ptrdiff_t>(bytes);
    return scaled;
}

/// Copies the elements of a layout, row by row.
void copy_elements(std::byte* to, const std::byte* from, std::size_t bytes, const strided& layout) {
    layout.each_run([&](std::ptrdiff_t first, std::size_t count) {
        std::memcpy(to, from + first * static_cast<std::ptrdiff_t>(bytes), count * bytes);
        to += count * bytes;
    });
}

}  // namespace

array_base::array_base(std::span<const std::size_t> shape, std::size_t element_bytes,
                       const share_options& how)
    : layout_(std::make_shared<const strided>(shape, element_bytes)) {
    if (layout_->size() == 0)
        return;
    memory_ = shared_memory::make(layout_->size() * element_bytes, how);
    data_ = memory_.data();
}

array_base::array_base(shared_memory memory, strided layout, std::size_t offset)
    : memory_(std::move(memory)), layout_(std::make_shared<const strided>(std::move(layout))) {
    if (layout_->size() > 0)
        data_ = memory_.data() + offset;
}

array_base array_base::from_descriptor(int descriptor, memory_access access, bool must_be_sealed,
                                       std::size_t offset, std::span<const std::size_t> shape,
                                       std::size_t element_bytes, std::size_t alignment) {
    const strided rows(shape, element_bytes);
    auto memory = shared_memory::foreign(descriptor, access, must_be_sealed);
    auto layout = strided::checked({shape.begin(), shape.end()},
                                   {rows.strides().begin(), rows.strides().end()}, element_bytes,
                                   offset, memory.size());
    array_base made(std::move(memory), std::move(layout), offset);
    share::require_alignment(made.data_, alignment);
    return made;
}

array_base array_base::attach(const std::string& name, memory_access access,
                              std::size_t element_bytes) {
    auto memory = shared_memory::attach(name, access);
    const std::size_t shape[] = {memory.size() / element_bytes};
    strided layout(shape, element_bytes);
    return {std::move(memory), std::move(layout), 0};
}

array_base array_base::adopt(const std::byte* data, std::vector<std::size_t> shape,
                             std::vector<std::ptrdiff_t> strides, std::size_t element_bytes,
                             memory_access access, std::function<void()> release) {
    const strided rows(shape, element_bytes);
    if (strides.empty())
        strides.assign(rows.strides().begin(), rows.strides().end());
    auto memory = rows.size() == 0 ? shared_memory() : shared_memory::around(data);
    if (memory) {
        if (memory.access() == memory_access::read_only && access == memory_access::read_write)
            throw std::invalid_argument("cohort: the memory can only be read: take a "
                                        "shared_array<const T>");
        const auto offset = static_cast<std::size_t>(data - memory.data());
        auto layout = strided::checked(std::move(shape), std::move(strides), element_bytes, offset,
                                       memory.size());
        return {memory.with_release(std::move(release)), std::move(layout), offset};
    }
    array_base copy(shape, element_bytes, share_options());
    constexpr auto anywhere = std::numeric_limits<std::int64_t>::max();
    copy_elements(copy.data_, data, element_bytes,
                  strided::checked(std::move(shape), std::move(strides), element_bytes,
                                   anywhere / 2, anywhere));
    release();
    return copy;
}

void array_base::copy_to(std::byte* to, std::size_t element_bytes) const {
    copy_elements(to, data_, element_bytes, layout());
}

const strided& array_base::layout() const noexcept {
    static const strided none;
    return layout_ ? *layout_ : none;
}

std::size_t array_base::offset() const noexcept {
    return data_ == nullptr ? 0 : static_cast<std::size_t>(data_ - memory_.data());
}

array_base array_base::with(strided layout, std::ptrdiff_t bytes_from_here) const {
    const bool is_empty = layout.size() == 0;
    const auto offset = static_cast<std::ptrdiff_t>(this->offset()) + bytes_from_here;
    return {is_empty ? shared_memory() : memory_, std::move(layout),
            is_empty ? 0 : static_cast<std::size_t>(offset)};
}

array_base array_base::read_only() const {
    return memory_ ? array_base(memory_.read_only(), *layout_, offset()) : *this;
}

array_base array_base::freeze() {
    if (!memory_)
        return *this;
    const auto first = offset();
    auto frozen = memory_.freeze();
    array_base made(std::move(frozen), *layout_, first);
    *this = {};
    return made;
}

void array_base::populate(std::size_t element_bytes) const {
    if (!memory_)
        return;
    if (layout_->contiguous())
        memory_.populate(data_, layout_->size() * element_bytes);
    else
        memory_.populate(memory_.data(), memory_.size());
}

void array_base::require_contiguous(const char* what) const {
    if (layout_ && !layout_->contiguous())
        throw std::logic_error(
            fmt::format("cohort: {} of a shared array that has gaps: clone() it first", what));
}

shared_item array_base::item(std::size_t element_bytes, const std::string& dtype) const {
    if (!memory_)
        return {};
    return {
        memory_.descriptor(),
        fmt::format(
            R"(,"bytes":{},"offset":{},"dtype":"{}","shape":[{}],"strides":[{}],"read_only":{}}})",
            memory_.size(), offset(), dtype, base::joined(layout().shape(), ","),
            base::joined(in_bytes(layout().strides(), element_bytes), ","),
            memory_.access() == memory_access::read_only)};
}

void array_base::write(encoder& to, const std::string& dtype) const {
    if (!valid())
        return to.null();
    to.array(5);
    if (memory_)
        to.unsigned_integer(to.attach(memory_.descriptor()));
    else
        to.null();
    share::write_place(to, offset(), *layout_, dtype);
}

array_base array_base::read(decoder& from, std::size_t element_bytes, std::size_t alignment,
                            const std::string& dtype, memory_access access) {
    if (from.take_null())
        return {};
    from.array(5);
    shared_memory memory;
    if (!from.take_null())
        memory = shared_memory::arrived(from.descriptor(from.integer_as<std::uint64_t>()));
    const auto place = share::read_place(from, dtype);
    if (memory && memory.access() == memory_access::read_only &&
        access == memory_access::read_write)
        throw codec_error("the shared array can only be read: take a shared_array<const T>");
    auto layout = place.layout(element_bytes, alignment, memory.size());
    return array_base(std::move(memory), std::move(layout), static_cast<std::size_t>(place.offset));
}

}  // namespace detail::inline v0_1
}  // namespace cohort
