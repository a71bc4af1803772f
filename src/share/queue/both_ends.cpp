// SPDX-License-Identifier: BSL-1.0
// The handle of both ends, behind queue.
#include "base/files/descriptor.hpp"
#include "share/queue/passing.hpp"

#include <cohort/detail/queue_end.hpp>

#include <fmt/format.h>

#include <utility>

namespace cohort::share {
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
