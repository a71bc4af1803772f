// SPDX-License-Identifier: BSL-1.0
// The handles of one end, behind queue_reader and queue_writer.
#include "share/queue/handles.hpp"

#include "base/files/descriptor.hpp"
#include "base/files/fork_held.hpp"
#include "base/sys/socket.hpp"
#include "loop/waits/watcher.hpp"
#include "share/channel/channel.hpp"
#include "share/channel/packet.hpp"
#include "share/queue/blocking.hpp"
#include "share/queue/received.hpp"

#include <cohort/detail/encoder.hpp>
#include <cohort/detail/queue_end.hpp>
#include <cohort/errors.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace cohort::share {
namespace {

// Descriptions may come from any process. Receivers reserve room for the largest packet.
constexpr std::uint64_t largest_inlined_ever = std::uint64_t{16} << 20;

detail::attachment descriptor(detail::decoder& from) {
    auto found = from.descriptor(from.integer_as<std::uint64_t>());
    if (!found)
        throw codec_error("a queue: its descriptor is missing");
    return found;
}

}  // namespace

void note_sharing(end& which) {
    which.give_away();
    const auto queue = which.queue.lock();
    const auto guard = lock_ends();
    if (queue)
        queue->roles.share();
}

void write_end(detail::encoder& to, const end::open_descriptors& descriptors) {
    to.unsigned_integer(to.attach(descriptors.socket));
    if (descriptors.slots_file)
        to.unsigned_integer(to.attach(descriptors.slots_file));
    else
        to.null();
}

void write_description(detail::encoder& to, const end::description& about) {
    to.unsigned_integer(about.type);
    to.unsigned_integer(about.capacity);
    to.unsigned_integer(about.largest_inlined);
    to.boolean(about.carries);
}

end::description read_description(detail::decoder& from, const end::description& expected) {
    end::description about = expected;
    about.type = from.integer_as<std::uint64_t>();
    about.capacity = from.integer_as<std::uint64_t>();
    const auto inlined = from.integer_as<std::uint64_t>();
    about.carries = from.boolean();
    if (about.type != expected.type)
        throw codec_error("a queue of values of another type");
    if (inlined > largest_inlined_ever)
        throw codec_error("a queue: its packets are too large");
    about.largest_inlined = static_cast<std::size_t>(inlined);
    return about;
}

std::shared_ptr<end> read_end(detail::decoder& from, end::side which,
                              const end::description& about) {
    const auto socket = descriptor(from);
    const auto slots = from.take_null() ? nullptr : descriptor(from);
    if (!base::is_packet_socket(*socket) || (slots != nullptr) != (about.capacity > 0))
        throw codec_error("a queue: its descriptors are none of a queue");
    base::report_nothing(*socket);
    auto found = end_of(which, socket, slots, about);
    found->give_away();
    return found;
}

// The handle of both ends, behind queue.
namespace {

[[noreturn]] void refuse_role(const char* used, const char* wanted) {
    throw detail::given_up_end(
        fmt::format("cohort: this process {} the queue; keep_both_ends() before "
                    "if it is to {} as well",
                    used, wanted));
}
[[noreturn]] void refuse_reading() { refuse_role("writes to", "read"); }
[[noreturn]] void refuse_writing() { refuse_role("reads from", "write"); }

}  // namespace
}  // namespace cohort::share

namespace cohort::detail::inline v0_1 {

using namespace share;

std::shared_ptr<both_ends> queue_ends::held() const {
    if (auto both = both_.lock())
        return both;
    throw gone_end();
}

queue_ends::queue_ends(const queue_description& about) : both_(std::make_shared<both_ends>()) {
    auto made = make_channel(about.capacity);
    auto known = about;
    known.largest_inlined = made.largest_inlined;
    const auto reader = base::own(std::move(made.reader));
    const auto writer = base::own(std::move(made.writer));
    const auto slots = made.slots ? base::own(std::move(made.slots)) : nullptr;
    both_->reader = end_of(queue_side::reader, reader, slots, known);
    both_->writer = end_of(queue_side::writer, writer, slots, known);
    both_->reader->queue = both_.firm();
    both_->writer->queue = both_.firm();
}

queue_end queue_ends::for_reading() const {
    const auto both = held();
    std::shared_ptr<share::end> given_up;  // destroyed after the lock is released
    auto guard = lock_ends();
    const auto answer = both->roles.read();
    if (answer == roles::answer::refused)
        refuse_reading();
    if (answer == roles::answer::gives_up_other)
        given_up.swap(both->writer);
    auto reader = both->reader;  // another thread's call may give it up once the lock is released
    guard.unlock();
    if (given_up && given_up->is_inherited())
        given_up->close();
    return queue_end(std::move(reader));
}

queue_end queue_ends::for_writing() const {
    const auto both = held();
    std::shared_ptr<share::end> given_up;
    auto guard = lock_ends();
    const auto answer = both->roles.write();
    if (answer == roles::answer::refused)
        refuse_writing();
    if (answer == roles::answer::gives_up_other)
        given_up.swap(both->reader);
    auto writer = both->writer;
    guard.unlock();
    if (given_up && given_up->is_inherited())
        given_up->close();
    return queue_end(std::move(writer));
}

queue_end queue_ends::reader() const {
    const auto both = held();
    const auto guard = lock_ends();
    if (!both->roles.may_read())
        refuse_reading();
    return queue_end(both->reader);
}

queue_end queue_ends::writer() const {
    const auto both = held();
    const auto guard = lock_ends();
    if (!both->roles.may_write())
        refuse_writing();
    return queue_end(both->writer);
}

void queue_ends::keep_both() const {
    const auto both = held();
    const auto guard = lock_ends();
    if (!both->roles.keep_both())
        both->roles.may_read() ? refuse_writing() : refuse_reading();
}

void queue_ends::close() const {
    const auto both = held();
    std::shared_ptr<share::end> closed;
    {
        const auto guard = lock_ends();
        closed = both->writer;
    }
    if (closed)
        closed->close();
}

std::size_t queue_ends::waiting() const {
    const auto both = held();
    std::shared_ptr<share::end> any;
    {
        const auto guard = lock_ends();
        any = both->reader ? both->reader : both->writer;
    }
    if (any->about().capacity == 0)
        throw std::logic_error("cohort: size() of a queue without a capacity");
    const auto opened = any->open();
    return any->which() == queue_side::reader ? waiting_at_reader(*opened.socket, *opened.slots)
                                              : waiting_at_writer(*opened.socket, *opened.slots);
}

void queue_ends::write(encoder& to) const {
    const auto both = held();
    const auto reading = reader();
    const auto writing = writer();
    reading.get()->give_away();
    {
        const auto guard = lock_ends();
        both->roles.share();
    }
    to.array(4 + 4);
    write_end(to, reading.get()->open());
    write_end(to, writing.get()->open());
    write_description(to, reading.get()->about());
}

queue_ends queue_ends::read(decoder& from, const queue_description& expected) {
    from.array(4 + 4);
    decoder descriptors = from;
    for (int i = 0; i < 4; ++i)
        from.value();
    const auto about = read_description(from, expected);
    auto reader = read_end(descriptors, queue_side::reader, about);
    auto writer = read_end(descriptors, queue_side::writer, about);
    const auto captured = reader->queue.lock();
    const auto guard = lock_ends();
    // In a forked copy the queue that was captured has its ends back.
    const bool is_inherited = captured && captured->generation != base::process_generation();
    auto both = is_inherited ? captured : std::make_shared<both_ends>();
    both->generation = base::process_generation();
    both->reader = std::move(reader);
    both->writer = std::move(writer);
    both->roles = roles();
    both->roles.share();
    return queue_ends(std::move(both));
}

}  // namespace cohort::detail::inline v0_1

namespace cohort::share {

namespace {

constexpr std::size_t largest_batch = 32 << 10;
/// One call brings no more payloads into memory than this, because many of them may be in one file.
constexpr std::size_t most_loaded = std::size_t{64} << 20;

/// Locks under which handles are closed, and copied for a call. A handle has one of a few, so that
/// threads with handles of their own seldom wait for each other.
struct handle_locks {
    struct all {
        std::array<std::mutex, 16> each;
        void lock() {
            for (auto& one : each)
                one.lock();
        }
        void unlock() {
            for (auto& one : each)
                one.unlock();
        }
    } mutex;
};

std::mutex& lock_of(const detail::queue_end& handle) noexcept {
    auto& locks = base::fork_held<handle_locks>::get().mutex.each;
    return locks[reinterpret_cast<std::uintptr_t>(&handle) / sizeof handle % locks.size()];
}

detail::queue_end copy_of(const detail::queue_end& handle) {
    const std::lock_guard guard(lock_of(handle));
    return handle;
}

/// Lets those who wait at an end see what came back. The state is locked by `lock`.
void wake(const std::shared_ptr<end>& which, std::unique_lock<std::mutex>& lock) {
    end::state& state = which->here();
    wake_threads(state);
    const bool is_awaited = !state.waiting.empty();
    lock.unlock();
    if (is_awaited)
        loop::serve_soon(which);
}

void next_throws(const std::shared_ptr<end>& which, std::exception_ptr wrong) {
    end::state& state = which->here();
    std::unique_lock lock(state.mutex);
    if (!state.wrong)
        state.wrong = std::move(wrong);
    wake(which, lock);
}

}  // namespace
}  // namespace cohort::share

namespace cohort::detail::inline v0_1 {

using namespace share;

queue_end used(const queue_end& end) {
    auto held = copy_of(end).lock();
    if (!held)
        throw std::logic_error("cohort: this handle is of no queue, or was closed");
    return queue_end(std::move(held));
}

void queue_end::close() noexcept {
    lendable<share::end> closed;  // destroyed after the lock is released
    const std::lock_guard guard(lock_of(*this));
    std::swap(closed, end_);
}

std::size_t checked_capacity(std::size_t capacity) {
    if (capacity == 0)
        throw std::invalid_argument("cohort: a queue of capacity 0 takes no value");
    // What a negative number becomes.
    if (capacity > static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()))
        throw std::invalid_argument(
            fmt::format("cohort: a queue of capacity {}: the capacity must be positive",
                        static_cast<std::ptrdiff_t>(capacity)));
    return capacity;
}

queue_answer queue_end::receive(std::vector<queue_message>& into, std::size_t at_most,
                                const patience& how_long) const {
    const auto answer = receive_some(*end_, into, at_most, how_long);
    std::size_t loaded = 0;
    for (auto at = into.begin(); at != into.end(); ++at) {
        if (!at->arrived)
            continue;
        const bool is_first = at == into.begin();
        loaded += at->arrived->spilled ? static_cast<std::size_t>(at->arrived->spilled_size) : 0;
        std::exception_ptr wrong;
        auto rest = at;
        try {
            if ((is_first || loaded <= most_loaded) && load(*at, end_->about().make))
                continue;
        } catch (...) {
            wrong = std::current_exception();
            ++rest;
        }
        give_back(std::span(rest, into.end()));
        if (is_first && wrong)
            std::rethrow_exception(wrong);
        if (is_first)
            refuse_for_now();
        if (wrong)
            next_throws(get(), std::move(wrong));
        into.erase(at, into.end());
        break;
    }
    return answer;
}

void queue_end::give_back(std::span<queue_message> messages) const {
    if (messages.empty())
        return;
    const auto until_stored = messages.front().underway;
    share::end::state& state = end_->here();
    std::unique_lock lock(state.mutex);
    for (auto& message : messages) {
        message.underway.reset();
        store(state, std::move(message));
    }
    wake(get(), lock);
}

queue_answer queue_end::send(queue_message message, const patience& how_long) const {
    outgoing packet(std::move(message), end_->open().borrow());
    return share::send(*end_, packet, how_long);
}

void queue_end::send_all(std::vector<queue_message> messages) const {
    const auto endless = patience::endless();
    const auto largest = std::min(largest_batch, end_->about().largest_inlined);
    batch_writer batch;
    std::uint64_t type = 0;
    const auto send_batch = [&] {
        if (batch.count() == 0)
            return;
        outgoing packet(std::exchange(batch, {}).take(), type);
        share::send(*end_, packet, endless);
    };
    for (auto& message : messages) {
        const bool fits = end_->about().capacity == 0 && message.attachments.empty() &&
                          message.bytes.size() < largest;
        if (batch.count() == most_in_batch || !fits ||
            batch.bytes().size() + message.bytes.size() > largest)
            send_batch();
        type = message.type;
        if (fits)
            batch.add(message.bytes);
        else
            send(std::move(message), endless);
    }
    send_batch();
}

void queue_end::write(encoder& to) const {
    const auto copy = copy_of(*this);
    const auto end = copy.lock();
    if (!end && copy.end_.is_gone())
        throw gone_end();
    if (!end)
        return to.null();
    note_sharing(*end);
    to.array(1 + 2 + 4);
    to.boolean(end->which() == queue_side::writer);
    write_end(to, end->open());
    write_description(to, end->about());
}

queue_end queue_end::read(decoder& from, queue_side side, const queue_description& expected) {
    if (from.take_null())
        return {};
    from.array(1 + 2 + 4);
    if (from.boolean() != (side == queue_side::writer))
        throw codec_error("the other end of a queue");
    // The description stands behind the descriptors.
    decoder descriptors = from;
    from.value();
    from.value();
    const auto about = read_description(from, expected);
    return queue_end(read_end(descriptors, side, about));
}

shared_item queue_end::item(const char* kind) const {
    const auto opened = end_->open();
    if (opened.slots)
        throw std::invalid_argument("cohort: share(): a queue with a capacity; a command does not "
                                    "know how to keep that");
    note_sharing(*end_);
    return {nullptr, fmt::format(R"(,"kind":"{}"}})", kind), opened.socket};
}

}  // namespace cohort::detail::inline v0_1
