// SPDX-License-Identifier: BSL-1.0
#include "host.hpp"

#include "holder.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include <unistd.h>

namespace chaos {

namespace {

/// Does what the judge asks for. If there is no judge any more, stops all groups.
asio::awaitable<void> obey(asio::posix::stream_descriptor gate, holder& groups) {
    char asked = static_cast<char>(wish::stop);
    asio::error_code error;
    co_await gate.async_read_some(asio::buffer(&asked, 1),
                                  asio::redirect_error(asio::use_awaitable, error));
    switch (static_cast<wish>(asked)) {
    case wish::stop:
        groups.stop();
        break;
    case wish::drop:
        groups.drop();
        std::exit(as_asked);
    case wish::exit:
        std::exit(as_asked);
    case wish::abort:
        ::_exit(as_asked);
    }
}

asio::awaitable<void> run_one() { (void)co_await cohort::run(cohort::command("true"), 1); }

}  // namespace

int host_main(std::uint64_t seed, int levels, limits allowed) try {
    asio::io_context context;
    holder groups;
    asio::co_spawn(context, obey(asio::posix::stream_descriptor(context, gate_number), groups),
                   asio::detached);
    hold_all(context, groups, seed, levels, allowed);
    return groups.failed() ? a_group_failed : all_well;
} catch (const std::exception& e) {
    fmt::print(stderr, "host: {}\n", e.what());
    return a_start_failed;
}

int sweeper_main() {
    asio::io_context context;
    asio::co_spawn(context, run_one(), asio::detached);
    context.run();
    return all_well;
}

}  // namespace chaos
