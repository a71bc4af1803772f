// SPDX-License-Identifier: BSL-1.0
#include "worker/main/run_worker.hpp"

#include "base/sys/descriptors.hpp"
#include "base/sys/memfd.hpp"
#include "protocol/registry/registry.hpp"
#include "worker/main/run.hpp"
#include "worker/main/unknown_function.hpp"
#include "worker/report/attachments.hpp"
#include "worker/signals/stop_signal.hpp"

#include <cerrno>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cohort {
namespace worker {

namespace {

/// Sets the parent-death signal again. exec clears it where it can give rights, even if it gives
/// none. It also clears it if the host runs as root and has dropped its capabilities, because the
/// program gets them back.
void keep_parent_death_signal(const protocol::control_order& order) noexcept {
    if (order.parent_death_signal == 0)
        return;
    ::prctl(PR_SET_PDEATHSIG, order.parent_death_signal);
    if (::getppid() != order.parent)
        ::_exit(127);  // the parent died before the call
}

/// Reads the group's arguments, and closes `fd`.
std::vector<std::byte> read_arguments(int fd) {
    if (fd < 0)
        return {};
    const base::unique_fd file(fd);
    struct stat status {};
    if (::fstat(fd, &status) != 0)
        throw std::system_error(errno, std::generic_category(), "the arguments' file");
    std::vector<std::byte> bytes(static_cast<std::size_t>(status.st_size));
    std::error_code error;
    const auto count = base::read_at(fd, bytes, 0, error);
    if (error)
        throw std::system_error(error, "reading the arguments");
    if (count < bytes.size())
        throw std::runtime_error("the memory file with the arguments has become shorter");
    return bytes;
}

detail::function_result run_function(const protocol::control_order& order) {
    const auto* function = protocol::find(protocol::key_of(order));
    if (function == nullptr)
        throw unknown_function(protocol::key_of(order));
    return function->invoke(order.index, read_arguments(order.arguments_fd),
                            take_attachments(order));
}

}  // namespace

void run_worker(const protocol::mark& control) {
    const auto order = protocol::read_order(control);
    if (!order)
        ::_exit(127);  // the order was there when this process was made
    keep_parent_death_signal(*order);
    base::close_on_exec(control.fd);
    if (order->arguments_fd >= 0)
        base::close_on_exec(order->arguments_fd);
    close_attachments_on_exec(*order);
    worker::forget_stop_signal();
    protocol::activate(*order);
    run(control, [&order] { return run_function(*order); });
}

}  // namespace worker
}  // namespace cohort
