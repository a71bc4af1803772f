// SPDX-License-Identifier: BSL-1.0
#include "share/cuda/segment_table.hpp"

namespace cohort::share::device {

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

}  // namespace cohort::share::device
