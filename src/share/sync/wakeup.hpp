// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "loop/waits/watcher.hpp"

#include <cohort/detail/border.hpp>
#include <cohort/detail/registration.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace cohort::share {

/// A descriptor by which processes wake each other, and the operations of this process that wait
/// for it. All handles of the descriptor in this process share it.
///
/// The operations belong to one process: a forked copy starts with none. A worker that is a copy
/// has closed its parent's descriptors, so the descriptor must arrive there again.
class wakeup : public loop::watched, public std::enable_shared_from_this<wakeup> {
public:
    enum class kind {
        state,  // an eventfd(2): it is set until somebody clears it
        news,   // a timerfd: each set() is a reason to look again; nobody clears it
    };

    /// @throws sharing_error
    static std::shared_ptr<wakeup> make(kind what);
    /// The one of this process that is known by the same, or a new one for the descriptor.
    /// @throws codec_error  the descriptor is none of this kind
    static std::shared_ptr<wakeup> arrived(kind what, std::uint64_t number,
                                           const detail::attachment& descriptor);

    /// What the descriptor is known by in this process. All eventfds have the same inode, and so do
    /// all timers.
    enum class known_by { kernel, drawn_number };
    using identity = std::pair<known_by, std::uint64_t>;

    wakeup(kind what, std::uint64_t number, identity id, detail::attachment descriptor);
    wakeup(const wakeup&) = delete;
    wakeup& operator=(const wakeup&) = delete;
    ~wakeup() override;

    /// Drawn by chance when the descriptor was made; the same in all processes.
    std::uint64_t number() const noexcept { return number_; }
    /// @throws sharing_error  EBADF: this is a forked copy that did not keep it
    detail::attachment descriptor();
    /// Does not block, whatever another process has done to the descriptor before. For news it does
    /// not block whatever another process does meanwhile, because the engine's thread calls it.
    /// @throws sharing_error  EBADF: this is a forked copy that did not keep the descriptor
    void set();
    /// Never blocks.
    /// @throws sharing_error  EBADF: this is a forked copy that did not keep the descriptor
    void clear();

    struct waiter {
        detail::receiver to;
        /// The completion, if it may complete now. Must not block.
        std::function<std::optional<detail::completion>()> look;
        /// Called when the wait is given up. @return false: too late, look() gives the completion
        std::function<bool()> withdraw;
    };
    /// Completes the operation when its look() gives something.
    void wait(waiter w);
    void cancel(detail::operation_id id) noexcept;
    void serve() override;

private:
    /// Lets go of what belongs to the parent, if this process is a new forked copy.
    void enter_process();
    detail::attachment open_descriptor();
    void arm(loop::watcher& here);

    const kind kind_;
    const std::uint64_t number_;
    const identity id_;
    const std::uint64_t ticket_;
    // Only under the lock:
    std::uint64_t generation_;       // in which process what follows belongs
    detail::attachment descriptor_;  // null: this process has closed it
    std::vector<waiter> waiting_;
};

}  // namespace cohort::share
