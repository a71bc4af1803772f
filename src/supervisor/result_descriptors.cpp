// SPDX-License-Identifier: BSL-1.0
#include "supervisor/result_descriptors.hpp"

#include "channel/carrier.hpp"
#include "record/result_message.hpp"
#include "share/descriptor.hpp"
#include "share/dispose.hpp"
#include "sys/patiently.hpp"
#include "sys/socket.hpp"

#include <cohort/outcome.hpp>

#include <new>
#include <span>
#include <system_error>
#include <utility>

namespace cohort::supervisor {
namespace {

/// Messages that are read in one go. The socket holds fewer, so more come only from a worker that
/// does nothing but send.
constexpr int most_at_once = 1024;

/// Closes elsewhere what nobody has taken, because that may wait.
class unwanted_rest {
public:
    explicit unwanted_rest(std::vector<sys::unique_fd>& came) noexcept : came_(came) {}
    unwanted_rest(const unwanted_rest&) = delete;
    unwanted_rest& operator=(const unwanted_rest&) = delete;
    ~unwanted_rest() {
        for (auto& descriptor : came_)
            share::dispose(std::move(descriptor));
    }

private:
    std::vector<sys::unique_fd>& came_;
};

}  // namespace

/// The socket may hold descriptors that nobody has received.
result_descriptors::~result_descriptors() { share::dispose(std::move(socket_)); }

std::shared_ptr<detail::arrived_descriptors> result_descriptors::take(int index, pid_t pid,
                                                                      bool& lost) {
    for (int i = 0; i < most_at_once && receive(); ++i) {
    }
    auto found = received_.extract({index, pid});
    lost = !found.empty() && found.mapped().lost;
    return found.empty() ? nullptr : std::move(found.mapped().descriptors);
}

/// Receives one message. @return false: there is none
bool result_descriptors::receive() {
    record::result_message message;
    std::size_t length = 0;
    std::vector<sys::unique_fd> came;
    const unwanted_rest rest(came);
    pid_t sender = 0;
    auto error = sys::patiently([&] {
        return sys::receive_message(socket_.get(), std::as_writable_bytes(std::span(&message, 1)),
                                    length, came, sys::waiting::nonblock, &sender);
    });
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
        sys::unique_fd carrier = std::move(came.front());
        came.clear();
        try {
            error = queues::unpack(carrier.get(), message.packed, came);
        } catch (const std::bad_alloc&) {
            error = std::make_error_code(std::errc::not_enough_memory);
        }
        share::dispose(std::move(carrier));
    }
    received into;
    into.lost = bool(error);
    into.descriptors =
        sys::make_shared_patiently<detail::arrived_descriptors>(std::exchange(came, {}));
    received_.insert_or_assign({message.index, sender}, std::move(into));
    return true;
}

}  // namespace cohort::supervisor

namespace cohort {

detail::arrived_descriptors::~arrived_descriptors() {
    for (auto& descriptor : came_)
        share::dispose(std::move(descriptor));
}

std::span<const detail::attachment> detail::arrived_descriptors::owned() {
    const std::lock_guard lock(mutex_);
    owned_.reserve(came_.size());
    for (auto& descriptor : came_)
        owned_.push_back(share::own(std::move(descriptor)));
    came_.clear();
    return owned_;
}

std::span<const std::shared_ptr<const int>> outcome::result_descriptors() const {
    return result_descriptors_ ? result_descriptors_->owned()
                               : std::span<const std::shared_ptr<const int>>();
}

}  // namespace cohort
