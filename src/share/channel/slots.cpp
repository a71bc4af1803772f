// SPDX-License-Identifier: BSL-1.0
#include "share/channel/slots.hpp"

#include "base/files/settings.hpp"
#include "base/sys/descriptors.hpp"
#include "base/sys/memfd.hpp"

#include <cohort/errors.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace cohort::share {
namespace {

using atomic_word = std::atomic<std::uint64_t>;
static_assert(atomic_word::is_always_lock_free);

// A slot's word: the number of its last taking, and what has become of it.
enum class state : std::uint64_t { free = 0, taken = 1, sent = 2 };
constexpr int state_bits = 2;
constexpr std::uint64_t state_mask = 3;
// The number: when the slot was taken, in milliseconds, then the clock's last bits.
constexpr int count_bits = 30;
constexpr std::uint64_t count_mask = (std::uint64_t{1} << count_bits) - 1;

constexpr std::uint64_t word_of(std::uint64_t number, state now) noexcept {
    return number << state_bits | static_cast<std::uint64_t>(now);
}
constexpr state state_of(std::uint64_t word) noexcept {
    return static_cast<state>(word & state_mask);
}
constexpr std::uint64_t number_of(std::uint64_t word) noexcept { return word >> state_bits; }

std::uint32_t milliseconds_of(slots::time now) noexcept {
    return static_cast<std::uint32_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count());
}

bool is_old(std::uint64_t number, std::uint32_t now) noexcept {
    const auto age = now - static_cast<std::uint32_t>(number >> count_bits);
    return age >= static_cast<std::uint32_t>(std::chrono::milliseconds(slots::patience).count());
}

/// Never lowers it. Gives up where others keep changing it: it is too low then, which is safe.
void raise(atomic_word& value, std::uint64_t to) noexcept {
    constexpr int enough = 64;
    auto seen = value.load();
    for (int tries = 0; seen < to && tries < enough; ++tries)
        if (value.compare_exchange_weak(seen, to))
            return;
}

}  // namespace

struct slots::page {
    atomic_word clock;
    atomic_word all_received_until;
    std::uint64_t unused[6];
};
struct slots::slot {
    atomic_word now;
    atomic_word stamp;  // never lowered, so that a late stamp of an earlier message is harmless
};

base::unique_fd slots::make_file(std::uint64_t capacity, std::size_t most,
                                 std::error_code& error) noexcept {
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>({capacity, most, largest_count}));
    auto made = base::make_memfd("cohort-queue-slots", error);
    const auto bytes = sizeof(page) + count * sizeof(slot);
    if (!error)  // without its pages, an access could end this process by SIGBUS
        error = base::reserve(made.get(), bytes);
    if (!error)
        error = base::add_seals(made.get(), F_SEAL_SHRINK | F_SEAL_GROW);
    return error ? base::unique_fd() : std::move(made);
}

slots::slots(int file, std::uint64_t capacity) {
    // Who can shrink the file could end this process by SIGBUS; so could an empty pool of huge
    // pages.
    struct stat status;
    struct statfs system;
    const int seals = ::fcntl(file, F_GET_SEALS);
    const auto none_of_ours = [] {
        return codec_error("a queue: its memory is none of a queue's");
    };
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
        throw none_of_ours();
    if (::fstat(file, &status) != 0 || ::fstatfs(file, &system) != 0)
        base::refuse("queue", base::last_error());
    constexpr std::size_t smallest = sizeof(page) + sizeof(slot);
    constexpr std::size_t largest = sizeof(page) + largest_count * sizeof(slot);
    const auto size = static_cast<std::uint64_t>(status.st_size);
    if (system.f_type == HUGETLBFS_MAGIC || size < smallest || size > largest)
        throw none_of_ours();
    count_ = static_cast<std::size_t>(
        std::min<std::uint64_t>((size - sizeof(page)) / sizeof(slot), capacity));
    bytes_ = sizeof(page) + count_ * sizeof(slot);
    void* const mapped = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED && (errno == EACCES || errno == EPERM))
        throw none_of_ours();
    if (mapped == MAP_FAILED)
        base::refuse("queue", base::last_error());
    page_ = static_cast<page*>(mapped);
    slots_ = reinterpret_cast<slot*>(page_ + 1);
}

slots::~slots() { ::munmap(page_, bytes_); }

bool slots::is_free(const slot& one, std::uint64_t seen) const noexcept {
    if (state_of(seen) == state::sent)
        return one.stamp.load() <= page_->all_received_until.load();
    return state_of(seen) != state::taken;
}

std::optional<slots::ticket> slots::take_free(time now) noexcept {
    const auto before = page_->clock.fetch_add(1);
    const auto number = std::uint64_t{milliseconds_of(now)} << count_bits | (before & count_mask);
    for (std::size_t i = 0; i < count_; ++i) {
        const auto at = static_cast<std::size_t>((before + i) % count_);
        auto seen = slots_[at].now.load();
        if (is_free(slots_[at], seen) &&
            slots_[at].now.compare_exchange_strong(seen, word_of(number, state::taken))) {
            ticket taken;
            taken.slot = static_cast<std::uint32_t>(at);
            taken.number = number;
            taken.before = before;
            return taken;
        }
    }
    return std::nullopt;
}

/// Stamps what was taken so long ago that whoever took it is dead or stopped. What is left is
/// stamped by later looks. One process seldom leaves more than a few slots, and each stamp is
/// several writes to memory that others use.
void slots::stamp_forsaken(time now) noexcept {
    const auto milliseconds = milliseconds_of(now);
    std::size_t stamped = 0;
    for (std::size_t i = 0; i < count_ && stamped < most_stamps; ++i) {
        const auto seen = slots_[i].now.load();
        if (state_of(seen) != state::taken || !is_old(number_of(seen), milliseconds))
            continue;
        ticket forsaken;
        forsaken.slot = static_cast<std::uint32_t>(i);
        forsaken.number = number_of(seen);
        sent(forsaken);
        ++stamped;
    }
}

/// Finds what was received and whose slot nobody has freed.
void slots::look(int socket, is_empty empty, time now) noexcept {
    stamp_forsaken(now);
    found_none(socket, empty);
}

void slots::found_none(int socket, is_empty empty) noexcept {
    const auto until = page_->clock.load();
    if (page_->all_received_until.load() < until && empty(socket))
        raise(page_->all_received_until, until);
}

std::optional<slots::ticket> slots::take(int socket, is_empty empty, time now) noexcept {
    auto taken = take_free(now);
    if (!taken) {
        look(socket, empty, now);
        taken = take_free(now);
    }
    return taken;
}

void slots::sent(const ticket& of) noexcept {
    auto& mine = slots_[of.slot];
    raise(mine.stamp, page_->clock.fetch_add(1) + 1);
    auto expected = word_of(of.number, state::taken);
    (void)mine.now.compare_exchange_strong(expected, word_of(of.number, state::sent));
}

void slots::free(const ticket& of) noexcept {
    auto& mine = slots_[of.slot];
    // Whoever has sent the message may not have said so yet.
    for (const auto was : {state::sent, state::taken, state::sent}) {
        auto expected = word_of(of.number, was);
        if (mine.now.compare_exchange_strong(expected, word_of(of.number, state::free)))
            return;
    }
}

void slots::received(const ticket& of) noexcept {
    raise(page_->all_received_until, std::min(of.before, page_->clock.load()));
    if (of.slot < count_)
        free(of);
}

std::size_t slots::waiting(int socket, is_empty empty, time now) noexcept {
    look(socket, empty, now);
    std::size_t count = 0;
    for (std::size_t i = 0; i < count_; ++i)
        count += is_free(slots_[i], slots_[i].now.load()) ? 0 : 1;
    return count;
}

}  // namespace cohort::share
