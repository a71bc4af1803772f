// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "waits/watcher.hpp"

#include <cohort/detail/border.hpp>
#include <cohort/detail/registration.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace cohort::sync {

/// An eventfd by which processes wake each other (eventfd(2)), and the operations of this process
/// that wait for it. All handles of the eventfd in this process share it.
///
/// The operations belong to one process: a forked copy starts with none. A worker that is a copy
/// has closed its parent's descriptors, so the eventfd's descriptor must arrive there again.
class wakeup : public waits::watched, public std::enable_shared_from_this<wakeup> {
public:
    enum class kind {
        state,  // it is set until somebody clears it
        news,   // each set() is a reason to look again; nobody clears it
    };

    /// @throws sharing_error
    static std::shared_ptr<wakeup> make(kind what);
    /// The one of this process that has the same eventfd, or a new one for the descriptor.
    /// @throws codec_error  the descriptor is no eventfd
    static std::shared_ptr<wakeup> arrived(kind what, std::uint64_t number,
                                           const detail::attachment& descriptor);

    /// What an eventfd is recognised by in this process. All eventfds have the same inode.
    enum class known_by { kernel, drawn_number };
    using identity = std::pair<known_by, std::uint64_t>;

    wakeup(kind what, std::uint64_t number, identity id, detail::attachment descriptor);
    wakeup(const wakeup&) = delete;
    wakeup& operator=(const wakeup&) = delete;
    ~wakeup() override;

    /// Drawn by chance when the eventfd was made; the same in all processes.
    std::uint64_t number() const noexcept { return number_; }
    /// @throws sharing_error  EBADF: this is a forked copy that did not keep it
    detail::attachment descriptor();
    /// Never block, whatever another process has done to the eventfd. They throw as descriptor().
    void set();
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
    void arm(waits::watcher& here);

    const kind kind_;
    const std::uint64_t number_;
    const identity id_;
    const std::uint64_t ticket_;
    // Only under the lock:
    std::uint64_t generation_;       // in which process what follows belongs
    detail::attachment descriptor_;  // null: this process has closed it
    std::vector<waiter> waiting_;
};

}  // namespace cohort::sync
