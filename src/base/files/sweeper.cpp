// SPDX-License-Identifier: BSL-1.0
#include "base/files/sweeper.hpp"

#include "base/files/fork_held.hpp"
#include "base/files/named_file.hpp"
#include "base/files/settings.hpp"
#include "base/sys/fork_mark.hpp"
#include "base/sys/threads.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <system_error>
#include <thread>
#include <utility>

#include <sys/stat.h>

namespace cohort::base {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr clock::duration first_pause = 5ms;
constexpr clock::duration last_pause = 10s;
constexpr int most_looks = 8;  // with pauses that double: 1.3 s
/// The thread rests that many times as long as it has worked, because the directory may be large.
constexpr int rest = 50;

dev_t device_of_names() noexcept {
    std::error_code error;
    const auto directory = open_directory(error);
    struct stat found {};
    return !error && ::fstat(directory.get(), &found) == 0 ? found.st_dev : 0;
}

}  // namespace

sweeper& names_sweeper() { return fork_held<sweeper>::get(); }

void sweeper::release(const std::string& name) noexcept {
    if (remove_unused(name) != removal::used)
        return;
    try {
        const std::lock_guard guard(mutex);
        renew();
        left_.insert(name);
        if (!this_is_a_worker())
            start_if_none();
    } catch (const std::exception&) {
        // The name stays until somebody else removes it.
    }
}

void sweeper::ask() noexcept {
    if (!may_have_names())
        return;
    const std::lock_guard guard(mutex);
    renew();
    looks_ = most_looks;
    start_if_none();
}

void sweeper::closed(dev_t device) noexcept {
    static constinit std::atomic<dev_t> names{0};
    if (!may_have_names())
        return;
    if (names == 0)
        names = device_of_names();
    if (device == names)
        ask();
}

/// A forked copy has neither the thread nor its duties.
void sweeper::renew() noexcept {
    const auto now = base::process_generation();
    if (std::exchange(generation_, now) == now)
        return;
    left_.clear();
    looks_ = 0;
    has_thread_ = false;
}

void sweeper::start_if_none() noexcept {
    ++news_;
    base::wake(news_);
    if (has_thread_)
        return;
    try {
        base::start_thread([this] { work(); });
        has_thread_ = true;
    } catch (const std::exception&) {
        // The next call tries again.
    }
}

void sweeper::work() noexcept {
    auto pause = first_pause;
    clock::duration worked{};
    for (;;) {
        // What is let go of together is looked for together.
        std::this_thread::sleep_for(std::clamp<clock::duration>(worked * rest, first_pause, 1s));
        const auto seen = news_.load();
        const auto begun = clock::now();
        try {
            if (!look())
                return;
        } catch (const std::exception&) {
            // There is no memory now.
        }
        worked = clock::now() - begun;
        const bool has_news = base::wait_on(news_, seen, base::deadline_in(pause));
        pause = has_news ? first_pause : std::min(2 * pause, last_pause);
    }
}

/// @return whether there is anything to do later; if not, the thread counts as gone
bool sweeper::look() {
    std::unique_lock guard(mutex);
    const int looks = std::exchange(looks_, 0);
    guard.unlock();
    const bool has_used = looks > 0 && sweep(prefix_of_session()).has_used;
    sweep_left();
    guard.lock();
    if (has_used)
        looks_ = std::max(looks_, looks - 1);
    has_thread_ = looks_ > 0 || (!left_.empty() && !this_is_a_worker());
    return has_thread_;
}

void sweeper::sweep_left() {
    std::unique_lock guard(mutex);
    renew();
    auto names = left_;
    guard.unlock();
    std::erase_if(names, [](const auto& name) { return remove_unused(name) == removal::used; });
    guard.lock();
    for (const auto& gone : names)
        left_.erase(gone);
}

}  // namespace cohort::base
