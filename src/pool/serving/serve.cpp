// SPDX-License-Identifier: BSL-1.0
#include "pool/serving/serve.hpp"

#include "pool/serving/connection.hpp"
#include "pool/wire/channel_of.hpp"
#include "protocol/record/error_json.hpp"
#include "protocol/registry/exception.hpp"
#include "protocol/registry/registry.hpp"
#include "worker/main/worker_main.hpp"

#include <cohort/detail/pool_plan.hpp>
#include <cohort/errors.hpp>

#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <iostream>
#include <stdexcept>
#include <utility>

#include <cxxabi.h>

namespace cohort::pools {
namespace {

detail::function_result result_of(const received_frame& call) {
    const auto parts = read_call(call.message.bytes);
    if (!parts)
        throw std::runtime_error("the pool has sent something that is no call");
    const auto* function = protocol::find(parts->function);
    if (function == nullptr)
        throw worker::unknown_function(parts->function);
    const auto& order = *protocol::current_order();
    auto result = function->invoke(order.index, parts->arguments, call.message.attachments);
    if (result.cbor.size() > order.result_limit)
        throw result_error(
            fmt::format("the result ({} bytes) is larger than the pool's result_limit ({} bytes)",
                        result.cbor.size(), order.result_limit));
    return result;
}

/// So that what a call has printed is there when its caller has the value.
void flush_streams() noexcept {
    std::fflush(stdout);
    try {
        std::cout.flush();
        std::clog.flush();
    } catch (...) {  // by std::ios::exceptions() of the user's
    }
}

/// Also what has no room here fails the call only.
/// @return false: nobody is there to take the answer
bool answer(connection& pool, received_frame call) {
    try {
        pool.load(call);
        auto result = result_of(call);
        flush_streams();
        return pool.send({frame_kind::value, call.name.call},
                         write_value(result.type, std::move(result.cbor)),
                         std::move(result.attachments));
    } catch (abi::__forced_unwind&) {
        throw;  // pthread_exit in the function
    } catch (...) {
        call.message = {};  // makes room
        const auto text =
            protocol::write_error(protocol::describe_current_exception(), largest_inlined);
        flush_streams();
        return pool.send({frame_kind::raised, call.name.call}, std::as_bytes(std::span(text)));
    }
}

/// What the initializer throws ends the worker, before it is READY.
bool begin(connection& pool) {
    auto first = pool.receive();
    if (!first || first->name.kind != frame_kind::initialize)
        return false;
    pool.load(*first);
    if (!first->message.bytes.empty())
        (void)result_of(*first);
    flush_streams();
    return pool.send({frame_kind::ready}, {});
}

detail::function_result serve(int, std::span<const std::byte>,
                              std::vector<detail::attachment> attachments) {
    // Never closed: the pool kills a worker that closes it, and this one may still have to write
    // what the initializer has thrown. Atomic, because the compiler leaves out a plain pointer that
    // nobody reads, and a leak checker then finds none.
    static constinit std::atomic<connection*> kept{nullptr};
    auto& pool = *new connection(std::move(attachments.at(0)));
    kept = &pool;
    for (bool goes_on = begin(pool); goes_on;) {
        auto call = pool.receive();
        goes_on = call && call->name.kind == frame_kind::call && answer(pool, std::move(*call));
    }
    return {};
}

}  // namespace

const detail::function_node& serving() noexcept {
    static const detail::function_node node(&serve, "cohort pool");
    return node;
}

}  // namespace cohort::pools

const cohort::detail::function_node& cohort::detail::pool_serving() noexcept {
    return pools::serving();
}
