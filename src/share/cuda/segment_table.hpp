// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/files/descriptor.hpp"
#include "base/files/fork_held.hpp"
#include "share/cuda/segment.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace cohort::share::device {

/// The segments of this process by their numbers. Holds none of them. Thread-safe.
class segment_table {
public:
    static segment_table& own() { return base::fork_held<segment_table>::get(); }

    /// @return null: there is none
    std::shared_ptr<segment> find(std::uint64_t number);
    /// Notes a segment. @return the one that has the number: another one if a thread was faster
    std::shared_ptr<segment> keep(const std::shared_ptr<segment>& fresh);
    void remove(std::uint64_t number) noexcept;

    /// Notes a segment of adopted memory, which can return when this process has no handle of it
    /// left: the driver maps memory of this process for others only.
    void note_adopted(const segment& known);
    /// Where adopted memory is; an address of 0: none has this number.
    struct whereabouts {
        driver::address address = 0;
        int device = 0;
        std::size_t bytes = 0;
        std::optional<base::file_id> lease;  // the pipe that is its lease
    };
    whereabouts adopted(std::uint64_t number);
    /// To be called when nobody uses the memory any more.
    void forget_adopted(std::uint64_t number) noexcept;

    std::mutex mutex;

private:
    std::map<std::uint64_t, std::weak_ptr<segment>> by_number_;
    std::map<std::uint64_t, whereabouts> adopted_;
};

}  // namespace cohort::share::device
