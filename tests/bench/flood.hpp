// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/cohort.hpp>

#include <asio.hpp>

#include <string>

namespace bench {

/// Starts workers that write lines without end. Nobody reads them.
/// @param writer  the path of writes_lines
inline asio::awaitable<cohort::group> start_flood(std::string writer, int workers) {
    auto what = cohort::command(writer, 0).stdout_to(cohort::lines());
    auto started = co_await cohort::spawn(what, workers);
    co_return started;
}

/// Ends it. @return how many bytes went through
inline asio::awaitable<double> stop_flood(cohort::group& flood) {
    co_await flood.stop();
    double bytes = 0;
    for (;;) {
        const auto some = co_await flood.output_batch();
        if (!some)
            co_return bytes;
        for (const auto& line : *some)
            bytes += static_cast<double>(line.text.size() + (line.complete ? 1 : 0)) +
                     static_cast<double>(line.lost_before);
    }
}

}  // namespace bench
