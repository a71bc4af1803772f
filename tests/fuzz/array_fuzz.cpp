// SPDX-License-Identifier: BSL-1.0
// What another process says of a shared array may be anything at all: libFuzzer makes it up, and
// here is what holds for it. An input is a byte that tells which descriptors come along, one that
// tells what array is expected, and the description.
#include "array_input.hpp"
#include "base/files/descriptor.hpp"
#include "base/sys/descriptors.hpp"
#include "holds.hpp"

#include <cohort/detail/array_base.hpp>
#include <cohort/detail/encoder.hpp>
#include <cohort/sharing.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <limits>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace cohort;
using namespace cohort::detail;
using namespace cohort::fuzz;

namespace {

using wide = __int128;  // holds what overflows in the layouts

attachment make_file(std::size_t size, int seals, memory_access access) {
    int file = ::memfd_create("array_fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    HOLDS(file >= 0);
    HOLDS(::ftruncate(file, static_cast<off_t>(size)) == 0);
    HOLDS(::fcntl(file, F_ADD_SEALS, seals) == 0);
    if (access == memory_access::read_only) {
        const auto path = "/proc/self/fd/" + std::to_string(file);
        const int reading = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        HOLDS(reading >= 0);
        ::close(std::exchange(file, reading));
    }
    return base::own(base::unique_fd(file));
}

/// The files that may come along. Their sizes are no multiples of a page.
const std::vector<attachment>& files() {
    static const std::vector<attachment> made{
        make_file(200, F_SEAL_SHRINK | F_SEAL_GROW, memory_access::read_write),
        make_file(5000, F_SEAL_SHRINK | F_SEAL_GROW, memory_access::read_only),
        make_file(5000, 0, memory_access::read_write),
    };
    return made;
}

/// From the lowest to behind the highest byte of the elements, counted from the start of the
/// memory.
struct reach {
    wide lowest = 0;
    wide highest = 0;
};

reach reach_of(const array_base& array, std::size_t element_bytes) {
    const auto shape = array.layout().shape();
    const auto strides = array.layout().strides();
    const wide first = reinterpret_cast<std::uintptr_t>(array.data()) -
                       wide(reinterpret_cast<std::uintptr_t>(array.memory().data()));
    reach found{first, first + element_bytes};
    for (std::size_t i = 0; i < shape.size(); ++i) {
        const wide way = wide(shape[i] - 1) * strides[i] * element_bytes;
        HOLDS(way < wide(array.memory().size()) && -way < wide(array.memory().size()));
        (way < 0 ? found.lowest : found.highest) += way;
    }
    return found;
}

void check_size(const strided& layout, std::size_t element_bytes) {
    HOLDS(layout.shape().size() <= strided::highest_rank);
    HOLDS(layout.shape().size() == layout.strides().size());
    wide bytes = element_bytes;
    for (const std::size_t extent : layout.shape()) {
        bytes *= std::max<wide>(extent, 1);
        HOLDS(bytes <= std::numeric_limits<std::ptrdiff_t>::max());
    }
    const bool is_empty = std::ranges::count(layout.shape(), 0U) != 0;
    HOLDS(wide(layout.size()) * element_bytes == (is_empty ? 0 : bytes));
}

/// Reads a byte, and writes it where that is allowed: what is not mapped so is a SIGSEGV.
void touch(const array_base& array, std::byte* at) {
    const volatile std::byte* const from = at;
    const std::byte found = *from;
    if (array.memory().access() == memory_access::read_write)
        *const_cast<volatile std::byte*>(from) = found;
}

void check_elements(const array_base& array, const element& of) {
    check_size(array.layout(), of.bytes);
    HOLDS((array.data() == nullptr) == (array.layout().size() == 0));
    if (array.data() == nullptr)
        return;
    const reach all = reach_of(array, of.bytes);
    HOLDS(all.lowest >= 0);
    HOLDS(all.highest <= wide(array.memory().size()));
    HOLDS(reinterpret_cast<std::uintptr_t>(array.data()) % of.alignment == 0);
    touch(array, array.memory().data() + static_cast<std::size_t>(all.lowest));
    touch(array, array.memory().data() + static_cast<std::size_t>(all.highest) - 1);
    std::vector<std::size_t> last(array.layout().shape().begin(), array.layout().shape().end());
    for (auto& index : last)
        --index;
    for (const std::ptrdiff_t distance : {std::ptrdiff_t{0}, array.layout().distance(last)}) {
        std::byte* const at = array.data() + distance * static_cast<std::ptrdiff_t>(of.bytes);
        touch(array, at);
        touch(array, at + of.bytes - 1);
    }
}

void check_views(const array_base& array, const element& of) {
    const auto check = [&](const strided::view& seen) {
        check_elements(array.with(seen.first, seen.second * static_cast<std::ptrdiff_t>(of.bytes)),
                       of);
    };
    const auto shape = array.layout().shape();
    for (std::size_t i = 0; i < shape.size(); ++i) {
        if (shape[i] > 0)
            check(array.layout().select(i, shape[i] - 1));
        check(array.layout().narrow(i, shape[i] / 2, shape[i] - shape[i] / 2));
        check({array.layout().transpose(0, i), 0});
    }
}

void check_copy(const array_base& array, const element& of) {
    if (array.layout().size() > 500)
        return;
    std::vector<std::byte> copy(array.layout().size() * of.bytes);
    array.copy_to(copy.data(), of.bytes);
    HOLDS(copy.empty() || std::memcmp(copy.data(), array.data(), of.bytes) == 0);
}

/// What was read can be sent on.
void check_sent(const array_base& array, const expected& wanted) {
    encoder to;
    array.write(to, wanted.of.dtype);
    const encoded_value value = to.finish();
    decoder from(value.cbor, value.attachments);
    const auto again = array_base::read(from, wanted.of.bytes, wanted.of.alignment, wanted.of.dtype,
                                        wanted.access);
    from.end();
    HOLDS(again.valid() == array.valid());
    HOLDS(again.data() == array.data());
    HOLDS(std::ranges::equal(again.layout().shape(), array.layout().shape()));
    HOLDS(std::ranges::equal(again.layout().strides(), array.layout().strides()));
    HOLDS(bool(array.memory()) == bool(array.item(wanted.of.bytes, wanted.of.dtype).descriptor));
}

void check_array(const array_base& array, const expected& wanted) {
    if (!array.valid()) {
        HOLDS(!array.memory() && array.data() == nullptr);
        HOLDS(array.layout().size() == 0 && array.layout().shape().empty());
        return check_sent(array, wanted);
    }
    if (array.memory()) {
        const int descriptor = *array.memory().descriptor();
        HOLDS((::fcntl(descriptor, F_GET_SEALS) & F_SEAL_SHRINK) != 0);
        HOLDS(wanted.access == memory_access::read_only ||
              array.memory().access() == memory_access::read_write);
    }
    check_elements(array, wanted.of);
    check_views(array, wanted.of);
    check_copy(array, wanted.of);
    check_sent(array, wanted);
}

bool is_mapped(const std::byte* page) {
    unsigned char resident = 0;
    return page != nullptr && ::mincore(const_cast<std::byte*>(page), 1, &resident) == 0;
}

std::optional<array_base> read(bytes description, const std::vector<attachment>& came,
                               const expected& wanted) {
    decoder from(description, came);
    try {
        return array_base::read(from, wanted.of.bytes, wanted.of.alignment, wanted.of.dtype,
                                wanted.access);
    } catch (const std::bad_alloc&) {
        HOLDS(!"an input of this size asks for much memory");
    } catch (const std::exception& e) {
        HOLDS(std::strlen(e.what()) > 0);
    }
    return std::nullopt;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const bytes given(reinterpret_cast<const std::byte*>(data), size);
    if (given.size() < head_size)
        return 0;
    const auto came = coming_along(given, files());
    const auto open_before = base::open_descriptors();
    const std::byte* memory = nullptr;
    if (const auto array = read(given.subspan(head_size), came, expected_by(given))) {
        memory = array->memory().data();
        HOLDS(memory == nullptr || is_shared(memory));
        check_array(*array, expected_by(given));
    }
    HOLDS(!is_shared(memory) && !is_mapped(memory));
    HOLDS(base::open_descriptors() == open_before);
    for (const attachment& file : files())
        HOLDS(file.use_count() == 1 + std::ranges::count(came, file));
    return 0;
}
