// SPDX-License-Identifier: BSL-1.0
#include "group/supervisor/result_descriptors.hpp"

#include "base/files/descriptor.hpp"
#include "base/files/dispose.hpp"
#include "base/files/limits.hpp"
#include "base/sys/patiently.hpp"
#include "base/sys/socket.hpp"
#include "protocol/record/result_message.hpp"

#include <cohort/outcome.hpp>

#include <new>
#include <span>
#include <system_error>
#include <utility>

namespace cohort::groups {
namespace {

/// Messages that are read in one go. The socket holds fewer, so more come only from a worker that
/// does nothing but send.
constexpr int most_at_once = 1024;

}  // namespace

/// The socket may hold descriptors that nobody has received.
result_descriptors::~result_descriptors() { base::dispose(std::move(socket_)); }

void result_descriptors::started(int index, pid_t pid) {
    pids_[static_cast<std::size_t>(index)] = pid;
    std::erase_if(received_, [&](const auto& each) {
        const auto& [said, sender] = each.first;
        return said == index && sender != pid;
    });
}

std::shared_ptr<detail::arrived_descriptors> result_descriptors::take(int index, pid_t pid,
                                                                      bool& lost) {
    for (int i = 0; i < most_at_once && receive(); ++i) {
    }
    auto found = received_.extract({index, pid});
    started(index, nobody);
    lost = !found.empty() && found.mapped().lost;
    return found.empty() ? nullptr : std::move(found.mapped().descriptors);
}

bool result_descriptors::may_send(int index, pid_t sender) const noexcept {
    if (index < 0 || static_cast<std::size_t>(index) >= pids_.size())
        return false;
    const auto worker = pids_[static_cast<std::size_t>(index)];
    // A worker may send before its start is reported. A group's own workers send one message each.
    return worker == unknown ? received_.size() <= 2 * pids_.size() : worker == sender;
}

/// Receives one message. @return false: there is none
bool result_descriptors::receive() {
    protocol::result_message message;
    std::size_t length = 0;
    share::arrived came;
    pid_t sender = 0;
    const auto error = base::patiently([&] {
        return base::receive_message(socket_.get(), std::as_writable_bytes(std::span(&message, 1)),
                                     length, came.descriptors, base::waiting::nonblock, &sender);
    });
    const bool bad = error == std::errc::bad_message;
    if (error && !bad && error != std::errc::too_many_files_open)
        return false;
    if (length == 0)
        return false;
    // Workers send one descriptor, in which others may be packed.
    if (bad || length != sizeof message || came.descriptors.size() > 1 ||
        !may_send(message.index, sender))
        return true;
    came.packed = came.descriptors.empty() ? 0 : message.packed;
    received into;
    into.lost = bool(error);
    into.descriptors = base::make_shared_patiently<detail::arrived_descriptors>(std::move(came));
    received_.insert_or_assign({message.index, sender}, std::move(into));
    return true;
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
    return result_descriptors_ ? result_descriptors_->owned()
                               : std::span<const std::shared_ptr<const int>>();
}

}  // namespace cohort
