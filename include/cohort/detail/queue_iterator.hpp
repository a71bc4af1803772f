// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/received.hpp>

#include <cstddef>
#include <iterator>

namespace cohort::detail::inline v0_1 {

/// Gets values from a queue_reader until the stream ends: `for (auto& job : jobs)`. What get()
/// throws leaves the constructor and the increment.
template <class Reader, class T>
class queue_iterator {
public:
    using iterator_concept = std::input_iterator_tag;  ///< each value is seen once
    using value_type = T;                              ///< of the queue
    using difference_type = std::ptrdiff_t;            ///< as iterators have it

    /// Waits for the first value.
    explicit queue_iterator(Reader* from) : from_(from) { ++*this; }
    /// The present value, which may be changed or moved from.
    T& operator*() const { return *now_; }
    /// The present value.
    T* operator->() const { return &*now_; }
    /// Waits for the next value.
    queue_iterator& operator++() {
        now_ = from_->get();
        return *this;
    }
    /// Waits for the next value.
    void operator++(int) { ++*this; }
    /// Whether the stream has ended.
    friend bool operator==(const queue_iterator& at, std::default_sentinel_t) { return !at.now_; }

private:
    Reader* from_;
    mutable received<T> now_;
};

}  // namespace cohort::detail::inline v0_1
