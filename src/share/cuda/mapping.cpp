// SPDX-License-Identifier: BSL-1.0
#include "share/cuda/mapping.hpp"

namespace cohort::share::device {

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

}  // namespace cohort::share::device
