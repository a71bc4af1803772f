// SPDX-License-Identifier: BSL-1.0
#include "share/queue/refused.hpp"

#include "base/files/dispose.hpp"
#include "base/sys/descriptors.hpp"
#include "base/sys/fork_mark.hpp"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

namespace cohort::share {
namespace {

/// Four packets, or a quarter of what this process may have.
constexpr std::uint64_t most_unclosed = 1012;

/// Closes descriptors when it is destroyed, which is in the background.
struct to_be_closed {
    to_be_closed(std::shared_ptr<end> by, std::vector<base::unique_fd> came)
        : of(std::move(by)), descriptors(std::move(came)) {
        of.lock()->here().refused.unclosed += descriptors.size();
    }
    to_be_closed(const to_be_closed&) = delete;
    to_be_closed& operator=(const to_be_closed&) = delete;
    ~to_be_closed() {
        for (auto& descriptor : descriptors)
            base::close_received(std::move(descriptor));
        const auto still = of.lock();
        if (!still)
            return;
        auto& state = still->here();
        state.refused.unclosed -= descriptors.size();
        state.changed.notify_all();
        try {
            if (state.refused.are_awaited.exchange(false))
                loop::serve_soon(still);
        } catch (const std::exception&) {  // no engine: nobody is in line
        }
    }
    std::weak_ptr<end> of;
    std::vector<base::unique_fd> descriptors;
};

}  // namespace

incoming_of::~incoming_of() {
    if (refused.empty())
        return;
    try {
        base::dispose(
            std::make_shared<const to_be_closed>(of.shared_from_this(), std::move(refused)));
    } catch (const std::exception&) {  // no memory
        for (auto& descriptor : refused)
            base::dispose(std::move(descriptor));
    }
}

bool has_many_unclosed(const end::state& state) noexcept {
    const auto unclosed = state.refused.unclosed.load();
    return unclosed > 0 && unclosed >= std::min(most_unclosed, base::descriptor_limit() / 4);
}

bool await_closes(end::state& state) noexcept {
    if (!has_many_unclosed(state))
        return false;
    state.refused.are_awaited = true;
    return has_many_unclosed(state);
}

}  // namespace cohort::share
