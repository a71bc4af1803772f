// SPDX-License-Identifier: BSL-1.0
#include "host.hpp"

#include "group_set.hpp"

#include <cohort/cohort.hpp>

#include <asio.hpp>
#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include <unistd.h>

namespace chaos {

namespace {

/// Does what the test asks for. If the test has ended, stops all groups.
asio::awaitable<void> handle_request(asio::posix::stream_descriptor control_pipe,
                                     group_set& groups) {
    char asked = static_cast<char>(host_request::stop);
    asio::error_code error;
    co_await control_pipe.async_read_some(asio::buffer(&asked, 1),
                                          asio::redirect_error(asio::use_awaitable, error));
    switch (static_cast<host_request>(asked)) {
    case host_request::stop:
        groups.stop();
        break;
    case host_request::drop:
        groups.drop();
        std::exit(as_requested);
    case host_request::exit:
        std::exit(as_requested);
    case host_request::abort:
        ::_exit(as_requested);
    }
}

asio::awaitable<void> run_one_group() { (void)co_await cohort::run(cohort::command("true"), 1); }

}  // namespace

int host_main(std::uint64_t seed, int levels, limits allowed) try {
    asio::io_context context;
    group_set groups;
    asio::co_spawn(
        context,
        handle_request(asio::posix::stream_descriptor(context, control_pipe_number), groups),
        asio::detached);
    run_groups(context, groups, seed, levels, allowed);
    return groups.failed() ? a_group_failed : all_well;
} catch (const std::exception& e) {
    fmt::print(stderr, "host: {}\n", e.what());
    return a_start_failed;
}

int cleanup_main() {
    asio::io_context context;
    asio::co_spawn(context, run_one_group(), asio::detached);
    context.run();
    return all_well;
}

}  // namespace chaos
