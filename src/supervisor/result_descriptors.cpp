// SPDX-License-Identifier: BSL-1.0
#include "supervisor/result_descriptors.hpp"

#include "channel/carrier.hpp"
#include "record/result_message.hpp"
#include "share/descriptor.hpp"
#include "sys/socket.hpp"

#include <span>
#include <system_error>

namespace cohort::supervisor {
namespace {

/// Messages that are read in one go. The socket holds fewer, so more come only from a worker that
/// does nothing but send.
constexpr int most_at_once = 1024;

}  // namespace

std::vector<detail::attachment> result_descriptors::take(int index, pid_t pid, bool& lost) {
    for (int i = 0; i < most_at_once && receive(); ++i) {
    }
    auto found = received_.extract({index, pid});
    lost = !found.empty() && found.mapped().lost;
    return found.empty() ? std::vector<detail::attachment>()
                         : std::move(found.mapped().descriptors);
}

/// Receives one message. @return false: there is none
bool result_descriptors::receive() {
    record::result_message message;
    std::size_t length = 0;
    std::vector<sys::unique_fd> came;
    pid_t sender = 0;
    auto error = sys::receive_message(socket_.get(), std::as_writable_bytes(std::span(&message, 1)),
                                      length, came, sys::waiting::nonblock, &sender);
    const bool bad = error == std::errc::bad_message;
    if (error && !bad && error != std::errc::too_many_files_open)
        return false;
    if (length == 0)
        return false;
    // A group's own workers send one message each.
    const bool is_ours = !bad && length == sizeof message && message.index >= 0 &&
                         message.index < workers_ &&
                         received_.size() <= 2 * static_cast<std::size_t>(workers_);
    if (!is_ours)
        return true;
    if (message.packed > 0 && came.size() == 1) {
        const sys::unique_fd carrier = std::move(came.front());
        came.clear();
        error = queues::unpack(carrier.get(), message.packed, came);
    }
    received into;
    into.lost = bool(error);
    for (auto& descriptor : came)
        into.descriptors.push_back(share::own(std::move(descriptor)));
    received_.insert_or_assign({message.index, sender}, std::move(into));
    return true;
}

}  // namespace cohort::supervisor
