// SPDX-License-Identifier: BSL-1.0
#include <cohort/worker.hpp>

#include "sys/unique_fd.hpp"
#include "worker/context.hpp"
#include "worker/mark.hpp"
#include "worker/registry.hpp"
#include "worker/run.hpp"

#include <atomic>
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

/// What is recorded when the program does not hold the function that it was started for.
class unknown_function : public std::runtime_error {
public:
    unknown_function()
        : std::runtime_error(
              "the function of this worker is not in the program: it may be in a library that was "
              "opened with dlopen, or the program was replaced after it had started") {}
};

namespace {

constinit std::atomic<bool> reached{false};

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

[[noreturn]] void refuse_by_hand(const char* program, const char* argument) {
    std::string line(base_name(program == nullptr ? "" : program));
    line += ": ";
    line += argument;
    line += " is how the cohort library starts its worker processes: it cannot be given by hand "
            "(this descriptor is not that control file)\n";
    (void)!::write(STDERR_FILENO, line.data(), line.size());
    ::_exit(127);
}

void close_on_exec(int fd) noexcept {
    const int flags = ::fcntl(fd, F_GETFD);
    if (flags >= 0)
        ::fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
}

/// The group's arguments; `fd` is closed.
std::vector<std::byte> read_arguments(int fd) {
    if (fd < 0)
        return {};
    const sys::unique_fd file(fd);
    struct stat status {};
    if (::fstat(fd, &status) != 0)
        throw std::system_error(errno, std::generic_category(), "the arguments' file");
    std::vector<std::byte> bytes(static_cast<std::size_t>(status.st_size));
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t count =
            ::pread(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            throw std::system_error(errno, std::generic_category(), "reading the arguments");
        if (count == 0)
            throw std::runtime_error("the arguments' file has become shorter");
        done += static_cast<std::size_t>(count);
    }
    return bytes;
}

detail::function_result run_function(const record::control_order& order) {
    const auto* function = find(record::key_of(order));
    if (function == nullptr)
        throw unknown_function();
    return function->invoke(order.index, read_arguments(order.arguments_fd));
}

}  // namespace

bool worker_main_reached() noexcept { return reached.load(std::memory_order_acquire); }

}  // namespace worker

void worker_main(int argc, char** argv) {
    if (argc < 2 || argv == nullptr || argv[1] == nullptr)
        return;
    if (!std::string_view(argv[1]).starts_with(record::worker_argument_prefix))
        return;
    if (worker::reached.load(std::memory_order_acquire))
        return;
    const auto mark = worker::parse_mark(argv[1]);
    const auto order = mark ? worker::read_order(*mark) : std::nullopt;
    if (!order)
        worker::refuse_by_hand(argv[0], argv[1]);

    worker::reached.store(true, std::memory_order_release);
    worker::close_on_exec(mark->fd);
    if (order->arguments_fd >= 0)
        worker::close_on_exec(order->arguments_fd);
    if (argv[0] != nullptr) {  // executed by way of /proc/self/exe, its name is "exe"
        ::prctl(PR_SET_NAME, std::string(worker::base_name(argv[0])).c_str());
    }
    worker::activate(*order);
    worker::run(*mark, [&order] { return worker::run_function(*order); });
}

}  // namespace cohort
