// SPDX-License-Identifier: BSL-1.0
#include "worker/report/attachments.hpp"

#include "base/files/carrier.hpp"
#include "base/files/descriptor.hpp"
#include "base/sys/descriptors.hpp"
#include "base/sys/socket.hpp"
#include "protocol/record/control.hpp"

namespace cohort::worker {
namespace {

int number_of(const protocol::control_order& order, std::uint32_t index) noexcept {
    return order.first_attachment + static_cast<std::int32_t>(index);
}

}  // namespace

void close_attachments_on_exec(const protocol::control_order& order) noexcept {
    for (std::uint32_t i = 0; i < order.attachments; ++i)
        base::close_on_exec(number_of(order, i));
    if (order.results_fd >= 0)
        base::close_on_exec(order.results_fd);
}

std::vector<detail::attachment> take_attachments(const protocol::control_order& order) {
    std::vector<detail::attachment> taken;
    taken.reserve(order.attachments);
    for (std::uint32_t i = 0; i < order.attachments; ++i)
        taken.push_back(base::own(base::unique_fd(number_of(order, i))));
    return taken;
}

std::error_code send_attachments(const protocol::control_order& order,
                                 std::span<const detail::attachment> attachments) {
    std::vector<int> descriptors;
    for (const auto& attached : attachments)
        descriptors.push_back(*attached);
    protocol::result_message message;
    base::unique_fd carrier;
    if (descriptors.size() > 1) {  // the host has one more for each worker until it takes results
        std::error_code error;
        carrier = base::pack(descriptors, error);
        if (error)
            return error;
        message.packed = static_cast<std::uint32_t>(descriptors.size());
        descriptors = {carrier.get()};
    }
    return base::send_message(order.results_fd, std::as_bytes(std::span(&message, 1)), descriptors);
}

}  // namespace cohort::worker
