// SPDX-License-Identifier: BSL-1.0
#include "base/files/carrier.hpp"

#include "base/files/dispose.hpp"
#include "base/files/fork_held.hpp"
#include "base/sys/descriptors.hpp"
#include "base/sys/fork_mark.hpp"
#include "base/sys/socket.hpp"
#include "base/sys/threads.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include <fcntl.h>

namespace cohort::base {
namespace {

/// So many receives that do not end are all that this process waits for.
constexpr int most_unpacking = 8;

/// The threads that unpack in this process.
struct unpacking_threads {
    std::mutex mutex;
    int count = 0;
    std::uint64_t generation = base::process_generation();

    bool add() {
        const std::lock_guard guard(mutex);
        if (generation != base::process_generation()) {  // a forked copy has none of them
            generation = base::process_generation();
            count = 0;
        }
        if (count >= most_unpacking)
            return false;
        ++count;
        return true;
    }
    void remove() {
        const std::lock_guard guard(mutex);
        --count;
    }
    static unpacking_threads& all() { return fork_held<unpacking_threads>::get(); }
};

/// A call of unpack() on a thread. Who has waited too long leaves it to that thread.
struct unpacking {
    unpacking() = default;
    unpacking(const unpacking&) = delete;
    unpacking& operator=(const unpacking&) = delete;
    ~unpacking() {
        for (auto& descriptor : came)
            dispose(std::move(descriptor));
        dispose(std::move(carrier));
    }

    base::unique_fd carrier;
    std::size_t count = 0;
    std::vector<base::unique_fd> came;
    std::error_code error;
    base::futex ended{0};

    void run() noexcept {
        error = unpack(carrier.get(), count, came);
        ended = 1;
        base::wake(ended);
        unpacking_threads::all().remove();
    }
};

}  // namespace

base::unique_fd pack(std::span<const int> descriptors, std::error_code& error) noexcept {
    base::unique_fd carrier;
    base::unique_fd entrance;
    error = base::make_socket_pair(carrier, entrance);
    // A full socket must be an error, because nobody reads it meanwhile.
    if (!error && ::fcntl(entrance.get(), F_SETFL, O_NONBLOCK) != 0)
        error = base::last_error();
    const std::byte one{};
    while (!error && !descriptors.empty()) {
        const auto part = descriptors.first(std::min(descriptors.size(), base::most_descriptors));
        error = base::send_message(entrance.get(), std::span(&one, 1), part);
        descriptors = descriptors.subspan(part.size());
    }
    return error ? base::unique_fd() : std::move(carrier);
}

std::error_code unpack(int carrier, std::size_t count, std::vector<base::unique_fd>& descriptors) {
    base::report_nothing(carrier);
    const std::size_t wanted = descriptors.size() + count;
    descriptors.reserve(wanted);  // so that none is lost by bad_alloc
    std::array<std::byte, 1> one;
    std::size_t length = 1;
    std::vector<base::unique_fd> part;
    while (descriptors.size() < wanted) {
        // What there is no room for stays inside.
        const auto error = base::receive_message(carrier, one, length, part, base::waiting::peek);
        const bool is_empty = error == std::errc::resource_unavailable_try_again;
        if (error && !is_empty)
            return error;
        if (is_empty || length == 0 || part.empty())
            return std::make_error_code(std::errc::protocol_error);
        base::drop_message(carrier);
        std::move(part.begin(), part.end(), std::back_inserter(descriptors));
    }
    return {};
}

std::error_code unpack_in_time(base::unique_fd& carrier, std::size_t count,
                               std::vector<base::unique_fd>& descriptors,
                               std::chrono::milliseconds longest) {
    descriptors.reserve(descriptors.size() + count);
    const auto task = std::make_shared<unpacking>();
    if (!unpacking_threads::all().add())
        return std::make_error_code(std::errc::resource_unavailable_try_again);
    task->count = count;
    task->carrier = std::move(carrier);
    try {
        base::start_thread([task] { task->run(); });
    } catch (const std::exception&) {
        unpacking_threads::all().remove();
        carrier = std::move(task->carrier);
        return std::make_error_code(std::errc::resource_unavailable_try_again);
    }
    const auto deadline = base::deadline_in(longest);
    while (task->ended.load() == 0)
        if (!base::wait_on(task->ended, 0, deadline))
            return std::make_error_code(std::errc::timed_out);
    carrier = std::move(task->carrier);
    std::move(task->came.begin(), task->came.end(), std::back_inserter(descriptors));
    task->came.clear();
    return task->error;
}

}  // namespace cohort::base
