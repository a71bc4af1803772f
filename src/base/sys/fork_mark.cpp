// SPDX-License-Identifier: BSL-1.0
#include "base/sys/fork_mark.hpp"

#include <atomic>
#include <cstddef>
#include <memory>

#include <sys/mman.h>
#include <unistd.h>

namespace cohort::base {
namespace {

// The kernel wipes whole pages; it rounds this up to its own page size.
constexpr std::size_t length = 1;

}  // namespace

fork_mark::fork_mark() noexcept : pid_(::getpid()) {
    void* page =
        ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return;
    if (::madvise(page, length, MADV_WIPEONFORK) != 0) {
        ::munmap(page, length);
        return;
    }
    *static_cast<volatile unsigned char*>(page) = 1;
    page_ = static_cast<unsigned char*>(page);
}

fork_mark::~fork_mark() {
    if (page_ != nullptr)
        ::munmap(const_cast<unsigned char*>(page_), length);
}

bool fork_mark::same_process() const noexcept {
    return page_ != nullptr ? *page_ != 0 : ::getpid() == pid_;
}

std::uint64_t process_generation() {
    struct generation {
        explicit generation(std::uint64_t n) noexcept : number(n) {}
        const std::uint64_t number;
        fork_mark mark;
    };
    static constinit std::atomic<const generation*> current{nullptr};
    auto* seen = current.load(std::memory_order_acquire);
    while (seen == nullptr || !seen->mark.same_process()) {
        auto fresh = std::make_unique<const generation>(seen == nullptr ? 1 : seen->number + 1);
        if (current.compare_exchange_strong(seen, fresh.get(), std::memory_order_acq_rel))
            seen = fresh.release();
    }
    return seen->number;
}

}  // namespace cohort::base
