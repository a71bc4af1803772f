// SPDX-License-Identifier: BSL-1.0
#include "share/sync/barrier.hpp"

#include "base/sys/threads.hpp"

#include <cohort/detail/duration.hpp>
#include <cohort/detail/encoder.hpp>
#include <cohort/detail/sync_handles.hpp>
#include <cohort/errors.hpp>
#include <cohort/worker.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <unistd.h>

namespace cohort::share {

// One word, so that each change is whole: the phase and whether the barrier is broken, on which
// parties wait, in the lower half; the parties and how many have arrived in the upper one.
namespace {

using word = std::uint64_t;

constexpr word broken_bit = 1;
constexpr word phase_step = 2;
constexpr word lower_half = 0xffffffff;
constexpr int arrived_shift = 32;
constexpr int parties_shift = 48;
constexpr word one_arrived = word{1} << arrived_shift;
constexpr word one_party = word{1} << parties_shift;
constexpr word most = 0xffff;

constexpr word arrived_in(word w) { return (w >> arrived_shift) & most; }
constexpr word parties_in(word w) { return w >> parties_shift; }
constexpr std::uint32_t phase_in(word w) {
    return static_cast<std::uint32_t>(w & lower_half & ~broken_bit);
}
/// The word after a phase that `parties` parties are in.
constexpr word next_phase(word w, word parties) {
    return (parties << parties_shift) | ((phase_in(w) + phase_step) & lower_half);
}

/// What a slot holds of an arrival: never 0, with which slots begin.
constexpr std::uint32_t mark_of(std::uint32_t phase) { return phase | 1; }
constexpr std::uint32_t dropped_mark = 2;  // no mark_of() is even

/// How often a change is tried of a word that parties change meanwhile, on purpose or not.
constexpr int most_tries = 1'000;

}  // namespace

struct barrier_page::header {
    std::atomic<word> state;
    std::atomic<std::uint64_t> cause;
    std::atomic<std::uint32_t> awaited;
    std::atomic<std::uint32_t> workers;
    std::atomic<std::uint32_t> drops;
    std::uint32_t unused;
};
/// Two arrays in one.
struct barrier_page::slot {
    std::atomic<std::uint32_t> arrived;  // mark_of() the phase of the worker with this index
    std::atomic<pid_t> dropped;          // a process that has dropped out; in no order
};

constexpr int tag_shift = 38;
constexpr std::uint64_t index_bits = (1U << 24) - 1;

std::uint64_t tag_of(std::uint32_t phase) { return std::uint64_t{phase / phase_step} << tag_shift; }

std::uint64_t barrier_cause::packed(std::uint32_t phase) const noexcept {
    // From the lowest bit on: the kind in 2, the status in 12, the index + 1 in 24, the phase in
    // 26.
    std::uint64_t end = 0;
    if (status.exited())
        end = 0x400U | (static_cast<unsigned>(status.exit_code()) & 0xffU);
    else if (status.signaled())
        end = 0x800U | (static_cast<unsigned>(status.signal()) & 0xffU);
    return static_cast<std::uint64_t>(what) | end << 2 |
           (static_cast<std::uint64_t>(index + 1) & index_bits) << 14 | tag_of(phase);
}

barrier_cause barrier_cause::unpacked(std::uint64_t from, std::uint32_t phase) noexcept {
    barrier_cause cause;
    if (from >> tag_shift << tag_shift != tag_of(phase))
        return cause;
    cause.what = static_cast<kind>(from & 3);
    const auto number = static_cast<int>((from >> 2) & 0xff);
    if ((from >> 2 & 0x400U) != 0)
        cause.status = exit_status::from_code(number);
    else if ((from >> 2 & 0x800U) != 0)
        cause.status = exit_status::from_signal(number, false);
    cause.index = static_cast<int>((from >> 14) & index_bits) - 1;
    return cause;
}

std::size_t barrier_page::bytes_for(std::size_t parties) noexcept {
    return sizeof(header) + parties * sizeof(slot);
}

bool barrier_page::fits(std::size_t bytes) noexcept {
    return bytes >= bytes_for(1) && bytes <= bytes_for(most_parties) &&
           (bytes - sizeof(header)) % sizeof(slot) == 0;
}

barrier_page::barrier_page(std::byte* memory, std::size_t bytes) noexcept
    : head_(*reinterpret_cast<header*>(memory)), slots_((bytes - sizeof(header)) / sizeof(slot)) {
    static_assert(std::atomic<word>::is_always_lock_free);
}

void barrier_page::begin(std::size_t parties) noexcept {
    head_.state = word{parties} << parties_shift;
}

barrier_page::slot& barrier_page::at(std::size_t i) const noexcept {
    return *(reinterpret_cast<slot*>(&head_ + 1) + i);
}

bool barrier_page::has_slot(int index) const noexcept {
    return index >= 0 && static_cast<std::size_t>(index) < slots_;
}

barrier_page::state barrier_page::now() const noexcept {
    const word w = head_.state;
    return {phase_in(w), (w & broken_bit) != 0, static_cast<unsigned>(arrived_in(w)),
            static_cast<unsigned>(parties_in(w))};
}

barrier_page::arrival barrier_page::arrive(int index, std::uint32_t& phase) noexcept {
    for (word w = head_.state;;) {
        if ((w & broken_bit) != 0)
            return arrival::broken;
        if (parties_in(w) == 0)
            return arrival::no_party;
        phase = phase_in(w);
        const bool is_last = arrived_in(w) + 1 >= parties_in(w);
        if (!head_.state.compare_exchange_weak(w, is_last ? next_phase(w, parties_in(w))
                                                          : w + one_arrived))
            continue;
        if (has_slot(index))
            at(static_cast<std::size_t>(index)).arrived = mark_of(phase);
        return is_last ? arrival::completes : arrival::waits;
    }
}

bool barrier_page::withdraw(int index, std::uint32_t phase) noexcept {
    for (word w = head_.state; phase_in(w) == phase && (w & broken_bit) == 0;) {
        if (arrived_in(w) == 0)
            return false;  // somebody has written nonsense
        if (!head_.state.compare_exchange_weak(w, w - one_arrived))
            continue;
        if (has_slot(index))
            at(static_cast<std::size_t>(index)).arrived = 0;
        return true;
    }
    return false;
}

bool barrier_page::drop(int index, pid_t pid) noexcept {
    bool completes = false;
    word w = head_.state;
    do {
        if ((w & broken_bit) != 0 || parties_in(w) == 0)
            return false;
        completes = arrived_in(w) > 0 && arrived_in(w) + 1 >= parties_in(w);
    } while (!head_.state.compare_exchange_weak(w, completes ? next_phase(w, parties_in(w) - 1)
                                                             : w - one_party));
    // Noted last: a worker that is killed before this breaks the barrier. Noted first, the others
    // would wait for it for ever. Of workers only: nobody asks for the number of another process,
    // so it would be found at the end of a later worker that has got it.
    if (index >= 0)
        if (const auto place = head_.drops++; place < slots_)
            at(place).dropped = pid;
    if (has_slot(index))
        at(static_cast<std::size_t>(index)).arrived = dropped_mark;
    return completes;
}

bool barrier_page::take_drop(pid_t pid) noexcept {
    bool found = false;
    for (std::size_t i = 0; i < std::min<std::size_t>(slots_, head_.drops); ++i) {
        pid_t expected = pid;
        found |= at(i).dropped.compare_exchange_strong(expected, 0);
    }
    return found;
}

barrier_page::progress barrier_page::look(std::uint32_t phase) const noexcept {
    const word w = head_.state;
    if (phase_in(w) != phase)
        return progress::complete;
    return (w & broken_bit) != 0 ? progress::broken : progress::waits;
}

/// The half of the state on which the kernel waits.
static const base::futex& lower_half_of(const std::atomic<word>& state) noexcept {
    constexpr int at = std::endian::native == std::endian::little ? 0 : 1;
    return *(reinterpret_cast<const base::futex*>(&state) + at);
}

barrier_page::progress barrier_page::wait(std::uint32_t phase,
                                          const timespec* deadline) const noexcept {
    for (;;) {
        if (const auto found = look(phase); found != progress::waits)
            return found;
        if (deadline == nullptr)
            base::wait_on(lower_half_of(head_.state), phase);
        else if (!base::wait_on(lower_half_of(head_.state), phase, *deadline))
            return look(phase);
    }
}

void barrier_page::break_by(const barrier_cause& cause) noexcept {
    for (int i = 0; i < most_tries; ++i) {
        word w = head_.state;
        if ((w & broken_bit) != 0 || try_to_break(w, cause))
            return;
    }
    head_.state |= broken_bit;
}

bool barrier_page::break_phase(std::uint32_t phase, const barrier_cause& cause) noexcept {
    word w = head_.state;
    for (int i = 0; i < most_tries && phase_in(w) == phase && (w & broken_bit) == 0; ++i)
        if (try_to_break(w, cause))
            return true;
    return false;
}

bool barrier_page::try_to_break(std::uint64_t& seen, const barrier_cause& cause) noexcept {
    // Counts only if the barrier breaks in this phase. Who is killed in between has not broken it,
    // and whoever does so then says why.
    head_.cause = cause.packed(phase_in(seen));
    return head_.state.compare_exchange_weak(seen, seen | broken_bit);
}

void barrier_page::wake() const noexcept { base::wake(lower_half_of(head_.state)); }

barrier_cause barrier_page::cause() const noexcept {
    return barrier_cause::unpacked(head_.cause, now().phase);
}

void barrier_page::note_workers(int count) noexcept {
    const auto workers = static_cast<std::uint32_t>(std::max(count, 0));
    auto seen = head_.workers.load();
    for (int i = 0; i < most_tries && seen < workers; ++i)
        if (head_.workers.compare_exchange_weak(seen, workers))
            return;
}

void barrier_page::note_awaited() noexcept { head_.awaited = 1; }
bool barrier_page::is_awaited() const noexcept { return head_.awaited != 0; }

int barrier_page::first_missing() const noexcept {
    const auto mark = mark_of(now().phase);
    const auto workers = std::min<std::size_t>(slots_, head_.workers);
    for (std::size_t i = 0; i < workers; ++i)
        if (const auto seen = at(i).arrived.load(); seen != mark && seen != dropped_mark)
            return static_cast<int>(i);
    return -1;
}

/// "worker 3", "workers 3 and 5", "workers 0, 1, 2 and 5 others".
std::string barrier_page::missing_ones() const {
    constexpr std::size_t most_named = 3;
    const auto reached = now();
    const auto missing = reached.parties > reached.arrived ? reached.parties - reached.arrived : 0U;
    const auto workers = std::min<std::size_t>(slots_, head_.workers);
    std::string text;
    std::size_t named = 0;
    for (std::size_t i = 0; i < workers && named < std::min<std::size_t>(missing, most_named); ++i)
        if (const auto seen = at(i).arrived.load();
            seen != mark_of(reached.phase) && seen != dropped_mark) {
            const bool is_last = named + 1 == missing;
            text += fmt::format("{}{}", named == 0 ? "" : is_last ? " and " : ", ", i);
            ++named;
        }
    if (named == 0)
        return missing == 1 ? "one party" : fmt::format("{} parties", missing);
    text = (named == 1 ? "worker " : "workers ") + text;
    if (missing > named)
        text += fmt::format(" and {} other{}", missing - named, missing - named == 1 ? "" : "s");
    return text;
}

int barrier_page::culprit() const noexcept {
    const auto found = cause();
    return found.what == barrier_cause::kind::timed_out ? first_missing() : found.index;
}

std::string barrier_page::reason() const {
    const auto found = cause();
    const auto reached = now();
    const auto waited = fmt::format("{} of {} waited", reached.arrived, reached.parties);
    switch (found.what) {
    case barrier_cause::kind::worker_ended: {
        const auto how = found.status.signaled() ? "killed by " + found.status.signal_name()
                                                 : to_string(found.status);
        return fmt::format("worker {} has ended ({}) while {}", found.index, how, waited);
    }
    case barrier_cause::kind::timed_out:
        return fmt::format("{} had not arrived in time; {}", missing_ones(), waited);
    case barrier_cause::kind::not_started:
        return found.index < 0
                   ? "not all workers were started; " + waited
                   : fmt::format("worker {} could not be started; {}", found.index, waited);
    case barrier_cause::kind::none:
        break;
    }
    return "somebody has written into its memory";
}

namespace {

using detail::completion;
using detail::completion_of;

/// Makes an attachment of a barrier's page. It keeps the barrier, so that barriers_among() finds
/// it.
struct page_of_barrier {
    std::shared_ptr<barrier> passed;
    detail::attachment descriptor;
    void operator()(const int*) noexcept {
        passed.reset();
        descriptor.reset();
    }
};

detail::attachment attachment_of(const std::shared_ptr<barrier>& passed) {
    auto descriptor = passed->memory.descriptor();
    const int* const number = descriptor.get();
    return detail::attachment(number, page_of_barrier{passed, std::move(descriptor)});
}

broken_barrier error_of(const barrier_page& page) {
    return broken_barrier("cohort: barrier broken: " + page.reason(), page.culprit());
}

/// @return the phase to wait for; empty: this was the last party, and the phase is complete
std::optional<std::uint32_t> arrive(barrier& at) {
    (void)at.news->descriptor();  // without it nobody could be woken
    std::uint32_t phase = 0;
    switch (at.page.arrive(this_worker::index(), phase)) {
    case barrier_page::arrival::completes:
        at.announce();
        return std::nullopt;
    case barrier_page::arrival::waits:
        return phase;
    case barrier_page::arrival::broken:
        throw error_of(at.page);
    case barrier_page::arrival::no_party:
        break;
    }
    throw std::logic_error("cohort: barrier: every party has dropped out");
}

std::optional<completion> completion_at(const barrier_page& page, std::uint32_t phase) {
    const auto found = page.look(phase);
    if (found == barrier_page::progress::waits)
        return std::nullopt;
    completion result;
    if (found == barrier_page::progress::broken) {
        result = completion_of(completion::kind::failed);
        result.error = std::make_exception_ptr(error_of(page));
    }
    return result;
}

}  // namespace

void barrier::announce() noexcept {
    page.wake();
    if (!page.is_awaited())
        return;
    try {
        news->set();
    } catch (const std::exception&) {
        // A forked copy that did not keep the barrier is no party.
    }
}

void barrier::break_by(const barrier_cause& cause) noexcept {
    page.break_by(cause);
    announce();
}

bool barrier::break_phase(std::uint32_t phase, const barrier_cause& cause) noexcept {
    if (!page.break_phase(phase, cause))
        return false;
    announce();
    return true;
}

std::vector<std::shared_ptr<barrier>> barriers_among(std::span<const detail::attachment> passed) {
    std::vector<std::shared_ptr<barrier>> found;
    for (const auto& one : passed)
        if (const auto* const page = std::get_deleter<page_of_barrier>(one))
            if (std::ranges::find(found, page->passed) == found.end())
                found.push_back(page->passed);
    return found;
}

}  // namespace cohort::share

namespace cohort::detail::inline v0_1 {

using share::barrier_cause;
using share::barrier_page;

barrier_handle::barrier_handle(std::size_t parties) {
    if (parties == 0 || parties > barrier_page::most_parties)
        throw std::invalid_argument(
            fmt::format("cohort: a barrier of {} parties; it may have from 1 to {}", parties,
                        barrier_page::most_parties));
    auto memory = shared_memory::make(barrier_page::bytes_for(parties),
                                      share_options().strategy(sharing_strategy::file_descriptor));
    barrier_ = std::make_shared<share::barrier>(std::move(memory),
                                                share::wakeup::make(share::wakeup::kind::news));
    barrier_->page.begin(parties);
}

void barrier_handle::arrive_and_wait(std::optional<steady_duration> timeout) const {
    const auto phase = share::arrive(*barrier_);
    if (!phase)
        return;
    std::optional<timespec> deadline;
    if (timeout)
        deadline = base::deadline_in(*timeout);
    auto reached = barrier_->page.wait(*phase, deadline ? &*deadline : nullptr);
    if (reached == barrier_page::progress::waits) {
        (void)barrier_->break_phase(*phase, {barrier_cause::kind::timed_out, -1, {}});
        reached = barrier_->page.look(*phase);
    }
    if (reached == barrier_page::progress::broken)
        throw share::error_of(barrier_->page);
}

void barrier_handle::arrive_and_drop() const {
    (void)barrier_->news->descriptor();
    if (barrier_->page.drop(this_worker::index(), ::getpid()))
        barrier_->announce();
}

std::size_t barrier_handle::parties() const noexcept { return barrier_->page.now().parties; }
bool barrier_handle::broken() const noexcept { return barrier_->page.now().broken; }

const std::shared_ptr<share::wakeup>& barrier_handle::waits_at() const noexcept {
    return barrier_->news;
}

void barrier_handle::write(encoder& to) const {
    to.array(3);
    to.unsigned_integer(to.attach(share::attachment_of(barrier_)));
    to.unsigned_integer(to.attach(barrier_->news->descriptor()));
    to.unsigned_integer(barrier_->news->number());
}

barrier_handle barrier_handle::read(decoder& from) {
    from.array(3);
    const auto page = from.descriptor(from.integer_as<std::uint64_t>());
    const auto news = from.descriptor(from.integer_as<std::uint64_t>());
    const auto number = from.integer_as<std::uint64_t>();
    if (!page)
        throw codec_error("a barrier: its memory is missing");
    auto memory = shared_memory::arrived(page);
    if (memory.access() != memory_access::read_write || !barrier_page::fits(memory.size()))
        throw codec_error("a barrier: this is another piece of memory");
    barrier_handle made;
    made.barrier_ = std::make_shared<share::barrier>(
        std::move(memory), share::wakeup::arrived(share::wakeup::kind::news, number, news));
    return made;
}

void await_barrier(const barrier_handle& handle, const receiver& to) {
    const auto at = handle.get();
    const int index = this_worker::index();
    at->page.note_awaited();
    const auto phase = share::arrive(*at);
    if (!phase)
        return loop::complete(to, completion());
    try {
        at->news->wait({to, [at, phase] { return share::completion_at(at->page, *phase); },
                        [at, phase, index] { return at->page.withdraw(index, *phase); }});
    } catch (...) {
        if (at->page.withdraw(index, *phase))
            throw;
        loop::complete(to, share::completion_at(at->page, *phase).value_or(completion()));
    }
}

}  // namespace cohort::detail::inline v0_1
