// SPDX-License-Identifier: BSL-1.0
#include <cohort/detail/pool_border.hpp>

#include "pool/serving/serve.hpp"
#include "pool/state/pool_state.hpp"
#include "pool/wire/channel_of.hpp"
#include "pool/wire/frame.hpp"
#include "protocol/registry/registry.hpp"

#include <cohort/errors.hpp>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

// Hands the calls of the headers over to the engine's thread.
namespace cohort::detail::inline v0_1 {

namespace {

/// The engine of the pool's process. @throws std::system_error  in a forked copy of that process
loop::engine& engine_of(const pool_ref& pool) {
    if (!pool->runtime().is_own())
        throw std::system_error(std::make_error_code(std::errc::no_child_process),
                                "cohort: this pool belongs to the parent of this forked process");
    return pool->runtime().loop();
}

spawn_plan plan_of(const pool_settings& settings) {
    spawn_plan plan;
    plan.settings = settings.workers;
    plan.settings.method = method_for_functions(plan.settings);
    plan.work = "a pool's tasks";
    if (plan.settings.method == start_method::fork)
        plan.call = [](int index, std::vector<attachment> attachments) {
            return pools::serving().invoke(index, {}, std::move(attachments));
        };
    else
        plan.function = &pools::serving();
    place_workers(plan);
    hold_lent(plan);
    return plan;
}

/// Whether workers may execute another program, which knows functions by their names only.
bool has_other_program(const pool_settings& settings) {
    return settings.workers.where.limits.executable.has_value() || settings.workers.place;
}

queue_message message_of(pool_call call, bool by_name) {
    if (call.function == nullptr)
        return {};
    const auto key =
        by_name ? protocol::named_key_of(*call.function) : protocol::key_of(*call.function);
    auto bytes = std::make_shared<const std::vector<std::byte>>(
        pools::write_call(key, std::move(call.arguments.cbor)));
    const std::span<const std::byte> payload(*bytes);
    return {0, std::move(bytes), payload, std::move(call.arguments.attachments)};
}

pools::rules rules_of(const pool_settings& s) {
    pools::rules rules;
    rules.size = s.workers.nprocs;
    rules.at_least = std::min(s.at_least, rules.size);
    rules.idle = s.idle;
    rules.tasks_per_worker = s.tasks_per_worker;
    rules.memory_per_worker = s.memory_per_worker;
    rules.start_attempts = s.start_attempts;
    rules.starts_at_once = s.starts_at_once;
    rules.ready_within = s.ready_within;
    rules.drain_period = s.drain_period.value_or(s.workers.grace_period);
    rules.overlap = s.overlap;
    return rules;
}

/// Runs `ask` on the engine's thread. @throws std::system_error  see engine_of()
template <class Ask>
void post(const pool_ref& pool, Ask ask) {
    engine_of(pool).post([pool, ask = std::move(ask)] { ask(*pool); });
}

}  // namespace

pool_ref create_pool(const pool_settings& settings) {
    auto workers = std::make_shared<const worker_source>(plan_of(settings));
    auto initializer = settings.initializer ? settings.initializer() : pool_call();
    const bool by_name = has_other_program(settings);
    const auto pool = std::make_shared<pool_state>(
        workers, rules_of(settings),
        pool_state::call_settings{settings.queue,
                                  {settings.wait_limit, settings.task_deadline},
                                  by_name,
                                  message_of(std::move(initializer), by_name)});
    pool->empty_files(*workers);
    return pool;
}

void start_pool(const pool_ref& pool, receiver to) {
    post(pool, [to = std::move(to)](pool_state& p) { p.begin(to); });
}

reserved_place::reserved_place(pool_ref pool) noexcept
    : pool_(pool->shown().try_begin_wait() ? std::move(pool) : nullptr) {}

reserved_place reserved_place::in_any_case(pool_ref pool) noexcept {
    reserved_place place;
    pool->shown().begin_wait();
    place.pool_ = std::move(pool);
    return place;
}

reserved_place::~reserved_place() {
    if (pool_)
        pool_->shown().end_wait();
}

void submit_call(const pool_ref& pool, pool_call call, const call_times& limits,
                 reserved_place place, receiver to) {
    auto& engine = engine_of(pool);
    const auto& defaults = pool->settings();
    pool_state::call submitted;
    submitted.limits.wait = limits.wait ? limits.wait : defaults.limits.wait;
    submitted.limits.run = limits.run ? limits.run : defaults.limits.run;
    submitted.function = call.function->name;
    auto message = message_of(std::move(call), defaults.by_name);
    message.type = pools::type_of({pools::frame_kind::call, to.id});
    submitted.packet = std::make_shared<share::outgoing>(std::move(message), pools::channel_of(-1));
    submitted.to = std::move(to);
    if (!place)
        place = reserved_place::in_any_case(pool);
    engine.post([pool, submitted = std::move(submitted)] { pool->submit(submitted); });
    place.take();
}

void ask_pool(const pool_ref& pool, pool_wish wish, std::optional<time_point> until, receiver to) {
    post(pool, [wish, until, to = std::move(to)](pool_state& p) { p.ask(wish, until, to); });
}

void resize_pool(const pool_ref& pool, const pool_settings& settings, receiver to) {
    (void)engine_of(pool);
    auto workers = std::make_shared<const worker_source>(plan_of(settings), &pool->first_workers());
    post(pool, [workers, to = std::move(to)](pool_state& p) { p.resize(workers, to); });
}

void cancel_in_pool(const std::weak_ptr<pool_state>& pool, operation_id id,
                    bool stops_worker) noexcept {
    if (const auto own = pool.lock(); own && own->runtime().is_own())
        own->runtime().loop().post([own, id, stops_worker] { own->cancel(id, stops_worker); });
}

void release_pool(const pool_ref& pool) noexcept {
    if (pool && pool->runtime().is_own())
        pool->runtime().loop().post([pool] { pool->release(); });
}

void throw_empty_pool(const char* call) {
    throw std::logic_error(std::string("cohort::pool::") + call +
                           ": the pool is empty (default-constructed or moved from)");
}

pool_stats stats_of(const pool_state& pool) { return pool.shown().stats(); }
std::vector<pool_worker> workers_of(const pool_state& pool) { return pool.shown().workers(); }

}  // namespace cohort::detail::inline v0_1
