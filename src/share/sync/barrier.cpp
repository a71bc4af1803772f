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
#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <unistd.h>

namespace cohort::share {
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
