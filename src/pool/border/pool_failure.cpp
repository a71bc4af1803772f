// SPDX-License-Identifier: BSL-1.0
#include "base/values/demangle.hpp"
#include "base/values/group_end.hpp"
#include "group/border/worker_failure.hpp"
#include "pool/state/ended_call.hpp"
#include "pool/wire/channel_of.hpp"
#include "pool/wire/frame.hpp"
#include "share/channel/channel.hpp"

#include <cohort/detail/pool_border.hpp>
#include <cohort/errors.hpp>
#include <cohort/pool_errors.hpp>

#include <fmt/format.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

// Only here does the end of a pool's call become a value or an exception, on the thread that gets
// it.
namespace cohort::detail::inline v0_1 {

namespace {

std::string name_of_task(const pools::ended_call& call) {
    return call.function ? function_name(call.function) : std::string("the task");
}

/// What a worker has failed with.
std::exception_ptr failure_of_end(const pools::worker_link::end& how, int slot) {
    if (how.error)
        return how.error;
    if (how.not_started) {
        auto why = *how.not_started;
        why.index = slot;
        return failure_of(why);
    }
    if (!how.of_group || how.of_group->workers().empty())
        return std::make_exception_ptr(
            std::runtime_error(fmt::format("worker {} was stopped during its start", slot)));
    const bool was_killed = how.broke && how.of_group->workers().front()->left->status.signaled();
    return failure_of_worker(*how.of_group, slot, was_killed ? "broke the pool's protocol" : "");
}

std::string text_of(const std::exception_ptr& failure) {
    try {
        std::rethrow_exception(failure);
    } catch (const std::exception& e) {
        return e.what();
    } catch (...) {
        return "an exception of the user's";
    }
}

[[noreturn]] void throw_broken(const pools::ended_call& call) {
    const auto why = failure_of_end(call.worker, call.slot);
    const auto text = text_of(why);
    try {
        std::rethrow_exception(why);
    } catch (...) {
        std::throw_with_nested(pool_broken(call.attempts, text));
    }
}

[[noreturn]] void throw_task_timeout(const pools::ended_call& call) {
    std::vector<activity> at_stop;
    if (const auto& end = call.worker.of_group; end && !end->report().outcomes.empty())
        at_stop = end->report().outcomes.front().at_stop;
    throw task_timeout(call.limit, call.pid, call.slot, name_of_task(call), std::move(at_stop));
}

[[noreturn]] void refuse_answer(const pools::ended_call& call, const std::string& why) {
    throw result_error(
        fmt::format("the result of {} in worker {} {}", name_of_task(call), call.slot, why));
}

task_value take_value(pools::ended_call& call, const char* type) {
    try {
        if (!share::load(call.answer, pools::channel_of(-1).make))
            share::refuse_for_now();
    } catch (const codec_error& e) {
        refuse_answer(call, fmt::format("can't be read: {}", e.what()));
    }
    const auto parts = pools::read_value(call.answer.bytes);
    if (!parts || parts->type != type)
        refuse_answer(call, fmt::format("is not a {}",
                                        *type != 0 ? base::demangle(type) : std::string("void")));
    return {call.answer.owner, parts->cbor, std::move(call.answer.attachments)};
}

}  // namespace

task_value value_of(pools::ended_call& call, const char* type) {
    using end = pools::call_end;
    if (call.error)
        std::rethrow_exception(call.error);
    switch (call.how) {
    case end::answered:
        break;
    case end::died:
        std::rethrow_exception(failure_of_end(call.worker, call.slot));
    case end::timed_out:
        throw_task_timeout(call);
    case end::not_begun:
        throw queue_timeout(call.limit);
    case end::broken:
        throw_broken(call);
    case end::aborted:
    case end::dropped:
        throw std::system_error(std::make_error_code(std::errc::operation_canceled));
    }
    if (call.has_thrown)
        // Without names where no thread or no memory was left to look for them.
        std::rethrow_exception(
            failure_of_task(call.raised ? *call.raised : *pools::sent_error(call), call.slot));
    return take_value(call, type);
}

std::exception_ptr failure_of(const pools::ended_call& start) {
    try {
        throw_broken(start);
    } catch (...) {
        return std::current_exception();
    }
}

void refuse_value(const pools::ended_call& call, const char* type, const char* why) {
    refuse_answer(call, fmt::format("({}) could not be decoded: {}", base::demangle(type), why));
}

}  // namespace cohort::detail::inline v0_1
