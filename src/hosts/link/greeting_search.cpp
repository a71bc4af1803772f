// SPDX-License-Identifier: BSL-1.0
#include "hosts/link/greeting_search.hpp"

#include <algorithm>

namespace cohort::multihost {

std::size_t greeting_search::feed(std::span<const std::byte> bytes) {
    std::size_t taken = 0;
    while (taken < bytes.size() && state_ == state::looking) {
        const auto rest = bytes.subspan(taken);
        if (matched_ > 0) {
            take(rest.front());
            ++taken;
            continue;
        }
        const auto begin = std::find(rest.begin(), rest.end(), greeting(from_).front());
        const auto before = static_cast<std::size_t>(begin - rest.begin());
        add_noise(rest.first(before));
        taken += before;
        if (begin != rest.end() && state_ == state::looking) {
            matched_ = 1;
            ++taken;
        }
    }
    return taken;
}

/// One more byte after the beginning of a greeting. Because a greeting's first byte does not occur
/// again in it, no other greeting can have begun within what has matched.
void greeting_search::take(std::byte next) {
    const auto& own = greeting(other(from_));
    const bool same_until_here =
        std::equal(own.begin(), own.begin() + matched_, greeting(from_).begin());
    if (same_until_here && next == own[matched_] && next != greeting(from_)[matched_])
        resembles_ = other(from_);
    if (next == greeting(resembles_)[matched_]) {
        if (++matched_ == greeting_size)
            state_ = resembles_ == from_ ? state::found : state::echo;
        return;
    }
    add_noise(std::span(greeting(resembles_)).first(matched_));
    resembles_ = from_;
    matched_ = next == greeting(from_).front() ? 1 : 0;
    if (matched_ == 0)
        add_noise({&next, 1});
}

void greeting_search::add_noise(std::span<const std::byte> bytes) {
    const auto fits = std::min(bytes.size(), most_noise - noise_.size());
    noise_.append(reinterpret_cast<const char*>(bytes.data()), fits);
    if (fits < bytes.size())
        state_ = state::too_much_noise;
}

}  // namespace cohort::multihost
