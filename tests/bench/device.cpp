// SPDX-License-Identifier: BSL-1.0
// Measures how long it takes until another process has an array that is on a CUDA device.
#include "asio_ticker.hpp"
#include "quantile.hpp"
#include "sections.hpp"
#include "trips.hpp"

#include <cohort/cohort.hpp>
#include <cohort/cuda.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <string>
#include <utility>

namespace bench {
namespace {

using on_device = cohort::cuda::shared_array<char>;
using on_host = cohort::shared_array<char>;

/// A worker's copy on the device of what comes through memory of the host.
on_device received(const on_host& array) {
    on_device made(0, array.size());
    made.copy_from(array.span());
    return made;
}
const on_device& received(const on_device& array) { return array; }

/// Answers each array when its own device could read it.
template <class T>
void answer(int, cohort::queue_reader<T> from, cohort::queue_writer<char> to) {
    for (const T& array : from) {
        char last = 0;
        received(array).narrow(0, array.size() - 1, 1).copy_to({&last, 1});
        to.put(last);
    }
}

/// Sends what `make` returns, again and again.
template <class T, class Make>
asio::awaitable<void> hand_over(const trips& todo, Make make, std::vector<double>& us) {
    cohort::queue<T> there;
    cohort::queue<char> back;
    auto group = co_await cohort::spawn(cohort::function<answer<T>>(there, back), 1);
    auto out = there.writer();
    auto in = back.reader();
    us = time_each(todo, [&] {
        out.put(make());
        (void)in.get();
    });
    out.close();
    there.close();
    co_await group.join();
}

}  // namespace

void device(const arguments& words) {
    const std::string peer = words.text("peer");
    const trips todo{static_cast<std::size_t>(words.number("bytes")), words.number("trips")};
    if (const auto why = cohort::cuda::why_not(); !why.empty()) {
        fmt::print("{{\"why_not\": \"no device\"}}\n");
        fmt::print(stderr, "bench: {}\n", why);
        return;
    }
    std::vector<double> us;
    const on_device kept(0, todo.bytes);
    if (peer == "host")
        run_beside(nullptr, hand_over<on_host>(
                                todo,
                                [&] {
                                    const on_host copy(todo.bytes);
                                    kept.copy_to(copy.span());
                                    return copy;
                                },
                                us));
    else if (peer == "fresh")
        run_beside(nullptr, hand_over<on_device>(
                                todo, [&] { return on_device(0, todo.bytes); }, us));
    else
        run_beside(nullptr, hand_over<on_device>(
                                todo, [&] { return kept; }, us));
    fmt::print("{{\"us\": {}}}\n", quantile(us, 0.5));
}

}  // namespace bench
