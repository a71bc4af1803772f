// SPDX-License-Identifier: BSL-1.0
#include "loop/reactor/reactor.hpp"

#include "base/sys/descriptors.hpp"
#include "base/sys/processes.hpp"

#include <algorithm>
#include <cerrno>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <liburing.h>
#include <poll.h>
#include <unistd.h>

namespace cohort::loop {

namespace {

using namespace std::chrono_literals;

// Small, because the ring of a user who is not root counts against RLIMIT_MEMLOCK. Requests beyond
// its size are submitted in parts, and the kernel keeps completions beyond it (IORING_FEAT_NODROP).
constexpr unsigned submission_entries = 64;
constexpr unsigned completion_entries = 256;

[[noreturn]] void fail(int error, const char* what) {
    throw std::system_error(error, std::system_category(), what);
}

/// The mapped queues and the ring's descriptor.
class ring {
public:
    ring();
    ring(const ring&) = delete;
    ring& operator=(const ring&) = delete;
    ~ring() { io_uring_queue_exit(&ring_); }

    io_uring* get() noexcept { return &ring_; }

private:
    void leave_stdio();

    io_uring ring_{};
};

ring::ring() {
    // Best first. A kernel that is older than a flag answers EINVAL.
    constexpr unsigned tries[] = {
        IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,  // Linux 6.1
        IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN,   // Linux 6.0
        IORING_SETUP_COOP_TASKRUN,                                // Linux 5.19
        0,
    };
    int rc = -EINVAL;
    io_uring_params params{};
    for (const unsigned flags : tries) {
        params = {};
        params.flags = flags | IORING_SETUP_CLAMP | IORING_SETUP_CQSIZE;
        params.cq_entries = completion_entries;
        rc = io_uring_queue_init_params(submission_entries, &ring_, &params);
        if (rc != -EINVAL)
            break;
    }
    if (rc < 0)
        fail(-rc, "io_uring_setup");
    constexpr unsigned needed = IORING_FEAT_EXT_ARG | IORING_FEAT_NODROP;
    if ((params.features & needed) != needed) {
        io_uring_queue_exit(&ring_);
        fail(EOPNOTSUPP, "io_uring_setup (no waiting with a timeout: before Linux 5.11)");
    }
    // In a forked copy a stray write to the ring would reach this process's reactor.
    (void)io_uring_ring_dontfork(&ring_);
    leave_stdio();
}

/// Gives the ring's descriptor a number above 2: it may have a lower one if the host has closed its
/// stdio.
void ring::leave_stdio() {
    std::error_code error;
    auto moved = base::out_of_stdio(base::unique_fd(ring_.ring_fd), error);
    ring_.ring_fd = ring_.enter_ring_fd = moved.release();
    if (error) {
        io_uring_queue_exit(&ring_);
        fail(error.value(), "a descriptor for io_uring");
    }
}

class io_uring_reactor final : public reactor_base {
public:
    io_uring_reactor();
    ~io_uring_reactor() override;

    std::error_code watch_readable(ticket id, int fd) override;
    std::error_code read(ticket id, int fd, std::span<std::byte> buffer,
                         std::uint64_t offset) override;
    const char* name() const noexcept override { return "io_uring"; }

private:
    void collect(span_of_time longest) override;
    void try_out();
    io_uring_sqe* next_sqe();
    bool arm_wake();
    int enter(span_of_time longest);
    void reap();
    void completed(ticket id, int result, unsigned flags);
    void watch_ended(ticket id, int result);

    ring ring_;
    std::unordered_map<ticket, int> watches_;  // the descriptors of armed watches
    std::unordered_set<ticket> reads_;         // in flight
    bool wake_armed_ = false;
};

std::error_code not_taken() {
    return std::make_error_code(std::errc::resource_unavailable_try_again);
}

io_uring_reactor::io_uring_reactor() : reactor_base(1) { try_out(); }

// Tries the ring: one io_uring_enter with a read and the poll for wake-ups. A probe of the opcodes
// would prove less, and its io_uring_register may be denied where the ring works.
void io_uring_reactor::try_out() {
    std::uint64_t count = 0;  // the eventfd starts at 1: readable now, and not after this read
    std::vector<event> events;
    if (const auto error =
            read(trial_ticket, wake_.get(), std::as_writable_bytes(std::span(&count, 1)), 0))
        fail(error.value(), "io_uring_enter");
    wait(std::chrono::steady_clock::now() + 1s, events);
    if (events.size() != 1 || events[0].result != sizeof count)
        fail(events.empty() ? ETIMEDOUT : -events[0].result, "io_uring read");
    if (!wake_armed_)
        fail(EINVAL, "io_uring poll (multishot)");
}

io_uring_reactor::~io_uring_reactor() {
    // The kernel may write into the buffers of reads until they have completed.
    for (const ticket id : reads_)
        if (io_uring_sqe* const sqe = next_sqe()) {
            io_uring_prep_cancel64(sqe, id, 0);
            io_uring_sqe_set_data64(sqe, cancel_ticket);
        }
    while (!reads_.empty() && enter(std::nullopt) == 0)
        reap();
}

/// A free submission entry. @return null: the kernel takes no more now.
io_uring_sqe* io_uring_reactor::next_sqe() {
    io_uring_sqe* sqe = io_uring_get_sqe(ring_.get());
    for (int tries = 0; !sqe && tries < 3; ++tries) {
        if (io_uring_submit(ring_.get()) < 0)
            reap();  // EBUSY: older kernels take nothing while completions wait for room
        sqe = io_uring_get_sqe(ring_.get());
    }
    return sqe;
}

std::error_code io_uring_reactor::watch_readable(ticket id, int fd) {
    watches_.emplace(id, fd);
    io_uring_sqe* const sqe = next_sqe();
    if (!sqe) {
        watches_.erase(id);
        return not_taken();
    }
    io_uring_prep_poll_add(sqe, fd, POLLIN);
    io_uring_sqe_set_data64(sqe, id);
    return {};
}

std::error_code io_uring_reactor::read(ticket id, int fd, std::span<std::byte> buffer,
                                       std::uint64_t offset) {
    if (offset > last_offset) {
        ready_.push_back({id, -EINVAL});
        return {};
    }
    reads_.insert(id);
    io_uring_sqe* const sqe = next_sqe();
    if (!sqe) {
        reads_.erase(id);
        return not_taken();
    }
    const auto size = static_cast<unsigned>(std::min(buffer.size(), longest_read));
    io_uring_prep_read(sqe, fd, buffer.data(), size, offset);
    io_uring_sqe_set_data64(sqe, id);
    return {};
}

// A multishot poll (Linux 5.13) is edge-triggered: every write to the eventfd completes it once
// more, and nobody has to read the counter or to arm the poll again. The kernel may still end the
// poll, and says so by leaving out IORING_CQE_F_MORE.
bool io_uring_reactor::arm_wake() {
    if (wake_armed_)
        return true;
    io_uring_sqe* const sqe = next_sqe();
    if (!sqe)
        return false;
    io_uring_prep_poll_multishot(sqe, wake_.get(), POLLIN);
    io_uring_sqe_set_data64(sqe, wake_ticket);
    wake_armed_ = true;
    return true;
}

/// Submits and waits, both in one system call. @return 0, or the errno of a lasting failure
int io_uring_reactor::enter(span_of_time longest) {
    int rc = 0;
    if (longest == 0ns) {
        rc = io_uring_submit_and_get_events(ring_.get());
    } else {
        __kernel_timespec time{};
        if (longest) {
            const auto whole = std::chrono::duration_cast<std::chrono::seconds>(*longest);
            time.tv_sec = whole.count();
            time.tv_nsec = (*longest - whole).count();
        }
        io_uring_cqe* first = nullptr;
        rc = io_uring_submit_and_wait_timeout(ring_.get(), &first, 1, longest ? &time : nullptr,
                                              nullptr);
    }
    switch (rc) {
    case -EAGAIN:  // no event, or no memory for a request, which then stays queued
    case -EBUSY:   // completions wait for room
    case -EINTR:
    case -ETIME:
        return 0;
    default:
        return rc < 0 ? -rc : 0;
    }
}

void io_uring_reactor::collect(span_of_time longest) {
    // Does not block without a poll for wake-ups, nor with events to report: next_sqe() may have
    // reaped some.
    if (!arm_wake() || !ready_.empty())
        longest = 0ns;
    if (const int error = enter(longest))
        fail(error, "io_uring_enter");
    reap();
}

// Each entry is given back before it is handled, because handling may submit and so reap again.
// Completions that found no room come with the next io_uring_enter, which then does not block.
void io_uring_reactor::reap() {
    ready_.reserve(ready_.size() + io_uring_cq_ready(ring_.get()));
    while (io_uring_cq_ready(ring_.get()) > 0) {
        io_uring_cqe* cqe = nullptr;
        if (io_uring_peek_cqe(ring_.get(), &cqe) != 0)
            return;
        const ticket id = cqe->user_data;
        const int result = cqe->res;
        const unsigned flags = cqe->flags;
        io_uring_cqe_seen(ring_.get(), cqe);
        completed(id, result, flags);
    }
}

void io_uring_reactor::completed(ticket id, int result, unsigned flags) {
    if (id == wake_ticket)
        wake_armed_ = (flags & IORING_CQE_F_MORE) != 0;
    else if (reads_.erase(id) != 0)
        ready_.push_back({id, result});
    else
        watch_ended(id, result);
}

void io_uring_reactor::watch_ended(ticket id, int result) {
    const auto found = watches_.find(id);
    if (found == watches_.end())
        return;  // the completion of a cancel request
    const int fd = found->second;
    watches_.erase(found);
    // The kernel cancels the requests of a thread that has ended. No event was lost: watch again.
    if (result == -ECANCELED && !watch_readable(id, fd))
        return;
    ready_.push_back({id, std::min(result, 0)});
}

/// The likely reason, so that a user can do something about it.
std::string hint(int error) {
    if (error == ENOMEM)
        return " (RLIMIT_MEMLOCK may be too low)";
    if (error != EPERM)
        return {};
    char value = '0';  // stays where the file is missing, which is so before Linux 6.6
    (void)base::read_start("/proc/sys/kernel/io_uring_disabled", std::span(&value, 1));
    if (value != '0')
        return std::string(" (kernel.io_uring_disabled is ") + value + ")";
    return " (a seccomp filter is likely, as in containers)";
}

}  // namespace

std::unique_ptr<reactor> make_io_uring() { return std::make_unique<io_uring_reactor>(); }

std::string probe_io_uring() {
    try {
        make_io_uring();
        return {};
    } catch (const std::system_error& error) {
        return error.what() + hint(error.code().value());
    }
}

}  // namespace cohort::loop
