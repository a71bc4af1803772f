// SPDX-License-Identifier: BSL-1.0
#include "share/cuda/segment.hpp"

#include "base/files/descriptor.hpp"
#include "base/files/name.hpp"
#include "base/files/settings.hpp"
#include "base/sys/descriptors.hpp"
#include "base/sys/leaked.hpp"
#include "share/cuda/session.hpp"

#include <cohort/errors.hpp>
#include <cohort/sharing.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <new>
#include <utility>

#include <fcntl.h>

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

std::shared_ptr<segment> segment_table::find(std::uint64_t number) {
    const std::lock_guard guard(mutex);
    const auto at = by_number_.find(number);
    return at == by_number_.end() ? nullptr : at->second.lock();
}

std::shared_ptr<segment> segment_table::keep(const std::shared_ptr<segment>& fresh) {
    const std::lock_guard guard(mutex);
    auto& known = by_number_[fresh->described().number];
    if (auto first = known.lock())
        return first;
    known = fresh;
    return fresh;
}

void segment_table::remove(std::uint64_t number) noexcept {
    const std::lock_guard guard(mutex);
    if (const auto at = by_number_.find(number); at != by_number_.end() && at->second.expired())
        by_number_.erase(at);
}

void segment_table::note_adopted(const segment& known) {
    std::optional<base::file_id> lease;
    if (known.described().lease)
        lease = base::id_of(*known.described().lease);
    const std::lock_guard guard(mutex);
    adopted_[known.described().number] = {reinterpret_cast<driver::address>(known.data()),
                                          known.device(), known.size(), lease};
}

segment_table::whereabouts segment_table::adopted(std::uint64_t number) {
    const std::lock_guard guard(mutex);
    const auto at = adopted_.find(number);
    return at == adopted_.end() ? whereabouts() : at->second;
}

void segment_table::forget_adopted(std::uint64_t number) noexcept {
    const std::lock_guard guard(mutex);
    adopted_.erase(number);
}

mapping::mapping(const operation& with, const allocation& memory, std::size_t bytes)
    : mapping() {  // so that the destructor runs if this throws
    bytes_ = bytes;
    with.require(with.calls().reserve, &address_, bytes, 0U, 0U, 0U);
    calls_ = &with.calls();
    with.require(with.calls().map, address_, bytes, 0U, memory.get(), 0U);
    is_mapped_ = true;
    allow(with, address_, bytes, with.device());
}

mapping::~mapping() {
    if (calls_ == nullptr)
        return;
    const beside_captures mode(*calls_);
    if (is_mapped_)
        (void)calls_->unmap(address_, bytes_);
    (void)calls_->free_address(address_, bytes_);
}

void allow(const operation& with, driver::address address, std::size_t bytes, int device) {
    driver::access wanted;
    wanted.where.id = device;
    with.require(with.calls().set_access, address, bytes, &wanted, 1U);
}

namespace {

driver::allocation_properties properties_on(int device) {
    driver::allocation_properties wanted;
    wanted.where.id = device;
    return wanted;
}

std::size_t granularity_of(const operation& with) {
    std::size_t granularity = 0;
    const auto wanted = properties_on(with.device());
    with.require(with.calls().granularity, &granularity, &wanted, driver::smallest_granularity);
    return granularity;
}

/// A descriptor of the memory. The driver's own may be inherited by programs that are executed.
detail::attachment export_from(const operation& with, const allocation& memory) {
    int exported = -1;
    with.require(with.calls().export_descriptor, &exported, memory.get(), driver::posix_descriptor,
                 0U);
    base::close_on_exec(exported);
    std::error_code error;
    auto descriptor = base::out_of_stdio(base::unique_fd(exported), error);
    if (error)
        base::refuse(with.what(), error);
    return base::own(std::move(descriptor));
}

/// Checks what can be checked before it is mapped: the driver knows no size of an allocation, but
/// refuses to map more than there is.
void check_sent(const operation& with, int handle, const segment_handle& sent) {
    std::size_t most = 0;
    with.require(with.calls().device_bytes, &most, handle);
    if (sent.bytes == 0 || sent.bytes > most)
        throw codec_error(
            fmt::format("a shared array on a CUDA device lies in memory of {} bytes", sent.bytes));
}

bool is_same(const segment& known, const segment_handle& sent) noexcept {
    return known.size() == sent.bytes && known.described().device == sent.device;
}

/// The range of addresses that was allocated at once, with these bytes in it.
std::pair<driver::address, std::size_t> block_around(const operation& with, driver::address first,
                                                     std::size_t bytes) {
    driver::address begin = 0;
    std::size_t size = 0;
    with.require(with.calls().address_range, &begin, &size, first);
    if (first < begin || bytes > size || first - begin > size - bytes)
        base::refuse(with.what(), EINVAL,
                     "the memory to adopt goes beyond what was allocated at once");
    return {begin, size};
}

/// Whether the driver says by this error that an address is not of cuMemMap.
bool is_not_mapped(driver::result error) noexcept {
    return error == driver::invalid_value || error == driver::not_permitted ||
           error == driver::not_supported;
}

/// Finds the memory of cuMemCreate behind a block. @return false: it comes from cuMemAlloc
bool retain_block(const operation& with, driver::address begin, std::size_t size,
                  allocation& memory) {
    const auto& calls = with.calls();
    const auto pointer = [](driver::address at) { return reinterpret_cast<void*>(at); };
    const auto error = calls.retain_allocation(memory.to_fill(), pointer(begin));
    if (is_not_mapped(error))
        return false;
    if (error != 0)
        refuse(with.what(), calls.retain_allocation.symbol(), error);
    allocation last(calls);
    with.require(calls.retain_allocation, last.to_fill(), pointer(begin + size - 1));
    if (last.get() != memory.get())
        base::refuse(with.what(), EINVAL, "the memory to adopt consists of several allocations");
    driver::allocation_properties found;
    with.require(calls.properties, &found, memory.get());
    if ((found.handle_types & driver::posix_descriptor) == 0)
        base::refuse(with.what(), ENOTSUP,
                     "its allocator made it by cuMemCreate without "
                     "CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, so it has no descriptor");
    return true;
}

/// The driver's handle of memory of cuMemAlloc.
driver::ipc_handle ipc_handle_of(const operation& with, driver::address begin) {
    driver::ipc_handle handle;
    const auto& get = with.calls().get_ipc_handle;
    if (const auto error = get(&handle, begin); error != 0)
        refuse(with.what(), get.symbol(), error,
               is_not_mapped(error) || error == driver::invalid_context
                   ? ": memory of cudaMallocAsync and other pools, and of contexts made by "
                     "cuCtxCreate, can't be adopted"
                   : "");
    return handle;
}

/// Whether a descriptor that came from elsewhere is a writing end of the pipe that is the lease. A
/// reading end, or another file in its place, would not keep the memory from being released.
bool is_lease(int descriptor, const segment_table::whereabouts& at) noexcept {
    const int flags = ::fcntl(descriptor, F_GETFL);
    return flags >= 0 && (flags & O_PATH) == 0 && (flags & O_ACCMODE) != O_RDONLY && at.lease &&
           base::id_of(descriptor) == at.lease;
}

int device_of(const void* data, const std::string& what) {
    const auto& calls = session::open().calls();
    int device = -1;
    const auto at = reinterpret_cast<driver::address>(data);
    if (const auto error = calls.pointer_attribute(&device, driver::device_of_pointer, at);
        error != 0)
        refuse(what, calls.pointer_attribute.symbol(), error);
    return device;
}

}  // namespace

segment::segment(int device, segment_handle described, mapping&& mapped)
    : device_(device), handle_(std::move(described)), origin_(origin::mapped),
      mapping_(std::move(mapped)), address_(mapping_->address()) {}

segment::segment(int device, segment_handle described, driver::address address,
                 origin from) noexcept
    : device_(device), handle_(std::move(described)), origin_(from), address_(address) {}

std::shared_ptr<segment> segment::make(int device, std::size_t bytes) {
    const auto& driver = session::open();
    end_kept();
    const operation with(driver, device, array_of(bytes, device));
    const auto& calls = with.calls();
    const std::size_t step = granularity_of(with);
    segment_handle made;
    made.number = base::random_number();
    made.device = driver.uuid_of(device);
    made.bytes = (bytes + step - 1) / step * step;
    allocation memory(calls);
    const auto wanted = properties_on(device);
    with.require(calls.create, memory.to_fill(), made.bytes, &wanted, 0U);
    made.exported = export_from(with, memory);
    mapping mapped(with, memory, made.bytes);
    const own_stream stream(with);
    with.require(calls.set_bytes, mapped.address(), static_cast<unsigned char>(0), made.bytes,
                 stream.get());
    with.require(calls.synchronize_stream, stream.get());
    return segment_table::own().keep(
        std::shared_ptr<segment>(new segment(device, std::move(made), std::move(mapped))));
}

std::shared_ptr<segment> segment::adopt(const void* data, std::size_t bytes,
                                        detail::attachment lease) {
    const auto what = "adopted memory of " + base::size_text(bytes);
    const auto& driver = session::open();
    const int device = device_of(data, what);
    const operation with(driver, device, what);
    const auto& calls = with.calls();
    const auto [begin, size] = block_around(with, reinterpret_cast<driver::address>(data), bytes);
    segment_handle made;
    made.number = base::random_number();
    made.device = driver.uuid_of(device);
    made.bytes = size;
    made.lease = std::move(lease);
    if (allocation memory(calls); retain_block(with, begin, size, memory))
        made.exported = export_from(with, memory);
    else
        made.ipc = ipc_handle_of(with, begin);
    return segment_table::own().keep(
        std::shared_ptr<segment>(new segment(device, std::move(made), begin, origin::adopted)));
}

std::shared_ptr<segment> segment::arrived(const segment_handle& sent) {
    const auto& driver = session::open();
    end_kept();
    auto found = segment_table::own().find(sent.number);
    if (!found)
        found = returned(driver, sent);
    if (!found) {
        const int device = driver.device_with(sent.device);
        if (device < 0)
            base::refuse("shared array of " + base::size_text(sent.bytes), ENODEV,
                         "this process does not see its CUDA device: CUDA_VISIBLE_DEVICES");
        const operation with(driver, device, array_of(sent.bytes, device));
        check_sent(with, driver.handle_of(device), sent);
        found =
            segment_table::own().keep(sent.ipc ? opened_from(with, sent) : mapped_from(with, sent));
    }
    if (!is_same(*found, sent))
        throw codec_error("two shared arrays on CUDA devices have the same number");
    return found;
}

/// Adopted memory of this process that comes back. @return null: it is not that
std::shared_ptr<segment> segment::returned(const session& driver, const segment_handle& sent) {
    const auto at = segment_table::own().adopted(sent.number);
    if (at.address == 0 || !sent.lease || at.bytes != sent.bytes ||
        driver.uuid_of(at.device) != sent.device || !is_lease(*sent.lease, at))
        return nullptr;
    return segment_table::own().keep(
        std::shared_ptr<segment>(new segment(at.device, sent, at.address, origin::adopted)));
}

std::shared_ptr<segment> segment::mapped_from(const operation& with, const segment_handle& sent) {
    if (!sent.exported)
        base::refuse(with.what(), EBADF, "its descriptor did not arrive");
    if (sent.bytes % granularity_of(with) != 0)
        throw codec_error(fmt::format("memory of a CUDA device can't have {} bytes", sent.bytes));
    const auto& calls = with.calls();
    allocation memory(calls);
    auto* const descriptor = reinterpret_cast<void*>(static_cast<std::intptr_t>(*sent.exported));
    with.require(calls.import_descriptor, memory.to_fill(), descriptor, driver::posix_descriptor);
    driver::allocation_properties found;
    with.require(calls.properties, &found, memory.get());
    if (found.where.type != driver::location().type || found.where.id != with.device())
        throw codec_error("the memory of a shared array is on another device than its sender says");
    return std::shared_ptr<segment>(
        new segment(with.device(), sent, mapping(with, memory, sent.bytes)));
}

std::shared_ptr<segment> segment::opened_from(const operation& with, const segment_handle& sent) {
    const auto& calls = with.calls();
    driver::address begin = 0;
    with.require(calls.open_ipc_handle, &begin, *sent.ipc, driver::lazy_peer_access);
    auto* const made = new (std::nothrow) segment(with.device(), sent, begin, origin::opened);
    if (made == nullptr) {
        (void)calls.close_ipc_handle(begin);
        throw std::bad_alloc();
    }
    std::shared_ptr<segment> opened(made);
    (void)block_around(with, begin, sent.bytes);
    return opened;
}

segment::~segment() {
    segment_table::own().remove(handle_.number);
    if (!session::is_usable()) {  // a forked copy has no mapping, and the driver's calls would fail
        if (mapping_)
            new mapping(std::move(*mapping_));
        return;
    }
    try {
        end({handle_, users(), std::move(mapping_), origin_ == origin::opened ? address_ : 0});
    } catch (const std::bad_alloc&) {
        // Then nobody waits for the device.
    }
}

std::vector<int> segment::users() const {
    const std::lock_guard guard(mutex_);
    auto all = allowed_;
    all.push_back(device_);
    return all;
}

void segment::await_work() const {
    for (const int device : users()) {
        await_device(operation(session::open(), device, array_of(size(), device_)));
    }
}

void segment::allow(int device) {
    if (device == device_)
        return;
    const auto& driver = session::open();
    const operation with(driver, device_, array_of(size(), device_));
    int can = 0;
    with.require(with.calls().can_access_peer, &can, driver.handle_of(device),
                 driver.handle_of(device_));
    if (can == 0)
        base::refuse(with.what(), ENOTSUP,
                     fmt::format("CUDA device {} has no peer access to it", device));
    share::device::allow(with, address_, size(), device);
    const std::lock_guard guard(mutex_);
    if (std::ranges::find(allowed_, device) == allowed_.end())
        allowed_.push_back(device);
}

}  // namespace cohort::share::device
