// SPDX-License-Identifier: BSL-1.0
// Measures the memory and the descriptors that an array or a queue costs this process.
#include "parent.hpp"
#include "sections.hpp"
#include "trips.hpp"
#include "usage.hpp"

#include <cohort/queue.hpp>
#include <cohort/shared_array.hpp>

#include <fmt/core.h>

#include <vector>

namespace bench {
namespace {

/// Makes `count` things. The memory of their handles counts as well.
template <class Make>
void measure(int count, Make make) {
    using thing = decltype(make());
    { const thing one = make(); }  // makes what is made only once
    const auto before = usage::now();
    std::vector<thing> things;
    things.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i)
        things.push_back(make());
    const auto after = usage::now();
    fmt::print("{{\"bytes\": {}, \"handle\": {}, \"descriptors\": {}}}\n",
               (after.allocated - before.allocated) / count, sizeof(thing),
               (after.descriptors - before.descriptors) / count);
}

auto maker_of_arrays(cohort::sharing_strategy strategy) {
    return [strategy] {
        return cohort::shared_array<char>(cohort::share_options().strategy(strategy), 4096);
    };
}

}  // namespace

void sharing_memory(const arguments& words) {
    raise_descriptor_limit();
    const std::string what = words.text("what");
    const int count = words.number("count");
    if (what == "array")
        measure(count, maker_of_arrays(cohort::sharing_strategy::file_descriptor));
    else if (what == "file_system_array")
        measure(count, maker_of_arrays(cohort::sharing_strategy::file_system));
    else if (what == "queue")
        measure(count, [] { return cohort::queue<ball>(); });
    else if (what == "bounded_queue")
        measure(count, [] { return cohort::queue<ball>(100); });
    else
        throw std::invalid_argument("no such thing: " + what);
}

}  // namespace bench
