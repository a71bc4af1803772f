// SPDX-License-Identifier: BSL-1.0
#include "worker/report/report.hpp"

#include "base/files/carrier.hpp"
#include "base/files/descriptor.hpp"
#include "base/sys/descriptors.hpp"
#include "base/sys/memfd.hpp"
#include "base/sys/socket.hpp"
#include "protocol/record/control.hpp"
#include "protocol/record/error_json.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>

#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cohort::worker {
namespace {

std::int64_t stamp(report::time_point at) noexcept {
    return std::chrono::nanoseconds(at.time_since_epoch()).count();
}

/// A write beyond the file size limit sends SIGXFSZ, which ends the process by default. While the
/// signal is blocked the write only fails.
void block_size_limit_signal() noexcept {
    sigset_t only;
    ::sigemptyset(&only);
    ::sigaddset(&only, SIGXFSZ);
    ::pthread_sigmask(SIG_BLOCK, &only, nullptr);
}

std::span<const std::byte> bytes_of(std::string_view text) noexcept {
    return std::as_bytes(std::span(text.data(), text.size()));
}

/// The error that is recorded in place of a result, and says why there is none.
error_record instead_of(const detail::function_result& result, const char* type,
                        const std::string& why) {
    error_record error;
    error.type = type;
    error.message = "the result (" + std::to_string(result.cbor.size()) + " bytes) " + why;
    error.trace = error.type + ": " + error.message;
    return error;
}

error_record not_written(const detail::function_result& result, std::error_code error) noexcept {
    try {
        return instead_of(result, "std::system_error", "could not be written: " + error.message());
    } catch (...) {
        return {};
    }
}

error_record too_large(const detail::function_result& result, std::uint64_t limit) noexcept {
    try {
        return instead_of(result, "cohort::result_error",
                          "is larger than the group's result_limit (" + std::to_string(limit) +
                              " bytes)");
    } catch (...) {
        return {};
    }
}

}  // namespace

report::report(const protocol::mark& control) noexcept : control_(control), owner_(::getpid()) {}

bool report::is_there() const noexcept {
    struct stat status {};
    return ::fstat(control_.fd, &status) == 0 && status.st_ino == control_.inode;
}

std::error_code report::write(std::span<const std::byte> bytes, std::uint64_t offset) noexcept {
    if (!is_there())
        return std::make_error_code(std::errc::bad_file_descriptor);
    return base::write_at(control_.fd, bytes, static_cast<off_t>(offset));
}

void report::entered() noexcept {
    progress_.entered_at = stamp(std::chrono::steady_clock::now());
    write_progress();
}

void report::called() noexcept {
    progress_.called_at = stamp(std::chrono::steady_clock::now());
    write_progress();
}

void report::exiting() noexcept {
    if (claimed_by_ != 0 || ::getpid() != owner_ || is_exiting_.exchange(true))
        return;
    block_size_limit_signal();
    const std::int64_t at = stamp(std::chrono::steady_clock::now());
    write(std::as_bytes(std::span(&at, 1)), protocol::exit_offset);
}

report::reporter report::claim() noexcept {
    if (::getpid() != owner_)
        return reporter::nobody;
    const auto self = static_cast<pid_t>(::syscall(SYS_gettid));
    pid_t claimer = 0;
    if (claimed_by_.compare_exchange_strong(claimer, self))
        return reporter::me;
    return claimer == self ? reporter::me_before : reporter::other;
}

void report::await_reported() const noexcept {
    const auto deadline = base::deadline_in(std::chrono::seconds(2));
    while (reported_ == 0 && base::wait_on(reported_, 0, deadline))
        continue;
}

int report::crash_file() const noexcept { return is_there() ? control_.fd : -1; }

void report::failed(protocol::payload_kind how, time_point at) noexcept {
    block_size_limit_signal();
    progress_.kind = how;
    progress_.finished_at = stamp(at);
    write_progress();
}

void report::crashed(std::uint64_t payload_length) noexcept { finish(0, payload_length); }

bool report::write_progress() noexcept {
    return !write(std::as_bytes(std::span(&progress_, 1)), protocol::progress_offset);
}

bool report::finish(std::size_t type_length, std::uint64_t payload_length) noexcept {
    progress_.type_length = static_cast<std::uint32_t>(type_length);
    progress_.payload_length = payload_length;
    const bool is_written = write_progress();
    reported_ = 1;
    base::wake(reported_);
    return is_written;
}

bool report::returned(const detail::function_result& result, std::uint64_t limit) noexcept {
    block_size_limit_signal();
    const auto refuse = [&](const error_record& why) {
        failed(protocol::payload_kind::raised, std::chrono::steady_clock::now());
        raised(why);
        return false;
    };
    if (result.cbor.size() > limit)
        return refuse(too_large(result, limit));
    std::error_code error = write(bytes_of(result.type), protocol::payload_offset);
    if (!error)
        error = write(result.cbor, protocol::payload_offset + result.type.size());
    if (error)
        return refuse(not_written(result, error));
    progress_.kind = protocol::payload_kind::returned;
    progress_.finished_at = stamp(std::chrono::steady_clock::now());
    // False if that is not written: exit code 0 would then pass for an exit(0) in the function,
    // which is a success.
    return finish(result.type.size(), result.type.size() + result.cbor.size());
}

void report::raised(const error_record& error) noexcept {
    std::string json = protocol::write_error(error);
    if (write(bytes_of(json), protocol::payload_offset)) {
        // A short record fits the file's first page, which is already allocated.
        json = protocol::write_error(error, protocol::short_record_limit);
        if (write(bytes_of(json), protocol::payload_offset))
            json.clear();
    }
    finish(0, json.size());
}

namespace {

constinit std::atomic<report*> noting{nullptr};

void note_exit() noexcept {
    if (report* const progress = noting.load(std::memory_order_relaxed))
        progress->exiting();
}

[[noreturn]] void end_process(int status) noexcept {
    note_exit();
    for (;;)
        ::syscall(SYS_exit_group, status);
}

}  // namespace

void report_exit(report& progress) noexcept {
    noting = &progress;
    std::atexit(note_exit);
    std::at_quick_exit(note_exit);
}

}  // namespace cohort::worker

// Async-signal-safe, as they must be. Weak, so that a program with a static libc links.
extern "C" [[gnu::weak, gnu::visibility("default")]] void _exit(int status) {
    cohort::worker::end_process(status);
}
extern "C" [[gnu::weak, gnu::visibility("default")]] void _Exit(int status) noexcept {
    cohort::worker::end_process(status);
}

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
