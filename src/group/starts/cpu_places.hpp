// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace cohort::groups {

/// Which parts of the caller's CPUs are in use, so that workers that run at the same time have
/// different ones.
class cpu_places {
public:
    /// @param count  how many parts there are
    explicit cpu_places(int count) : used_(std::make_shared<use>(count)) {}

    /// The number of a worker's part, which is in use until this is dropped, by any thread.
    using lease = std::shared_ptr<const int>;
    /// Worker `index` gets the part of its turn, unless another is in use by fewer.
    lease take(int index) {
        auto taken = std::make_shared<taken_part>(used_);  // first, because nothing may fail later
        const std::lock_guard lock(used_->mutex);
        auto& by = used_->by;
        const auto turn = by.begin() + index % static_cast<std::ptrdiff_t>(by.size());
        const auto least = std::ranges::min_element(by);
        const auto chosen = *turn == *least ? turn : least;
        taken->part = static_cast<int>(chosen - by.begin());
        ++*chosen;
        return {taken, &taken->part};
    }

private:
    struct use {
        explicit use(int count) : by(static_cast<std::size_t>(count)) {}
        std::mutex mutex;
        std::vector<int> by;  // how many workers use each part
    };
    struct taken_part {
        explicit taken_part(std::shared_ptr<use> of) noexcept : used(std::move(of)) {}
        taken_part(const taken_part&) = delete;
        taken_part& operator=(const taken_part&) = delete;
        ~taken_part() {
            if (part < 0)
                return;
            const std::lock_guard lock(used->mutex);
            --used->by[static_cast<std::size_t>(part)];
        }
        const std::shared_ptr<use> used;
        int part = -1;  // none yet
    };
    std::shared_ptr<use> used_;
};

}  // namespace cohort::groups
