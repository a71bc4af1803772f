// SPDX-License-Identifier: BSL-1.0
#include "group/supervisor/result_descriptors.hpp"

#include "base/files/descriptor.hpp"
#include "base/files/settings.hpp"
#include "base/sys/socket.hpp"
#include "base/values/group_end.hpp"
#include "protocol/record/control.hpp"

#include <span>
#include <system_error>
#include <utility>

namespace cohort::groups {
namespace {

/// Messages that are read. The socket holds fewer, so more come only from a worker that does
/// nothing but send.
constexpr int most_messages = 1024;

}  // namespace

std::shared_ptr<detail::arrived_descriptors> result_descriptors::take(pid_t worker, bool& lost) {
    std::shared_ptr<detail::arrived_descriptors> found;
    for (int i = 0; i < most_messages; ++i) {
        protocol::result_message message;
        std::size_t length = 0;
        share::arrived came;
        pid_t sender = 0;
        const auto error =
            base::receive_message(socket_.get(), std::as_writable_bytes(std::span(&message, 1)),
                                  length, came.descriptors, base::waiting::nonblock, &sender);
        const bool is_bad = error == std::errc::bad_message;
        // A message of no bytes, which a child of the worker may send, has a sender; the end none.
        const bool is_end = length == 0 && sender == 0;
        if ((error && !is_bad && error != std::errc::too_many_files_open) || is_end)
            break;
        // Workers send one descriptor, in which others may be packed.
        if (is_bad || length != sizeof message || came.descriptors.size() > 1 || sender != worker)
            continue;
        lost = bool(error);
        came.packed = came.descriptors.empty() ? 0 : message.packed;
        found = std::make_shared<detail::arrived_descriptors>(std::move(came));
    }
    return found;
}

void result_descriptors::give_to(outcome& worker) {
    bool lost = false;
    detail::outcome_access::descriptors(worker) = take(worker.pid, lost);
    if (lost)
        detail::add_note(detail::outcome_access::note(worker),
                         "descriptors in its result were lost: this process has no room for "
                         "more, see RLIMIT_NOFILE");
}

}  // namespace cohort::groups

namespace cohort {

std::span<const detail::attachment> detail::arrived_descriptors::owned() {
    const std::lock_guard lock(mutex_);
    auto& came = came_.descriptors;
    if (!share::unpack_all(came_))
        base::refuse("the descriptors of a result can't be received yet",
                     std::make_error_code(std::errc::too_many_files_open));
    owned_.reserve(owned_.size() + came.size());
    for (auto& descriptor : came)
        if (descriptor)  // else it was taken before memory was short
            owned_.push_back(base::own_received(std::move(descriptor)));
    came.clear();
    return owned_;
}

std::span<const std::shared_ptr<const int>> outcome::result_descriptors() const {
    return result_.descriptors ? result_.descriptors->owned()
                               : std::span<const std::shared_ptr<const int>>();
}

}  // namespace cohort
