// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "base/files/dispose.hpp"

#include <future>
#include <memory>
#include <utility>

namespace cohort::test {

/// Keeps the thread that disposes busy until it is destroyed.
class blocked_disposal {
public:
    blocked_disposal() {
        struct waits {
            std::promise<void> begun;
            std::shared_future<void> until;
            ~waits() {
                begun.set_value();
                until.wait();
            }
        };
        auto object = std::make_shared<waits>();
        object->until = open_.get_future().share();
        auto begun = object->begun.get_future();
        base::dispose(std::shared_ptr<const void>(std::move(object)));
        begun.wait();
    }
    blocked_disposal(const blocked_disposal&) = delete;
    blocked_disposal& operator=(const blocked_disposal&) = delete;
    ~blocked_disposal() { open_.set_value(); }

private:
    std::promise<void> open_;
};

}  // namespace cohort::test
