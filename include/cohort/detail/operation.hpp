// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/asio.hpp>
#include <cohort/detail/border.hpp>
#include <cohort/detail/duration.hpp>
#include <cohort/detail/executors.hpp>

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace cohort::detail::inline COHORT_ASIO_VERSION {

/// The function object posted to the handler's executor. It does not use the handler's allocator,
/// because that may be for the user's threads only, and the engine's thread posts.
class posted_operation {
public:
    explicit posted_operation(std::shared_ptr<operation_base> operation) noexcept
        : operation_(std::move(operation)) {}
    void operator()() {
        check_handler_thread();
        auto& operation = *operation_;
        operation.run(std::move(operation_));
    }

private:
    std::shared_ptr<operation_base> operation_;
};

/// An operation with its handler. `Deliver` turns the completion into the handler's arguments and
/// calls it.
template <class Handler, class Executor, class Deliver>
class operation final : public operation_base {
public:
    operation(Handler handler, const group_executor& where, const Executor& executor,
              Deliver deliver, std::shared_ptr<operation_registry> registry, operation_id id)
        : handler_(std::move(handler)), executor_(executor), work_(track_work(executor)),
          group_work_(where.executor(), where.registry() == registry ? nullptr : where.registry(),
                      id),
          deliver_(std::move(deliver)), registry_(std::move(registry)), id_(id) {}

    void post(std::shared_ptr<operation_base> self, const completion& result) override {
        result_ = result;
        const Executor executor = executor_;  // *this may be destroyed before post returns
        asio::post(executor, posted_operation(std::move(self)));
    }

    /// Frees the operation's memory before the handler is called, as Asio promises its users.
    void run(std::shared_ptr<operation_base> self) override {
        registry_->release(id_);
        auto slot = detail::get_associated_cancellation_slot(handler_);
        if (slot.is_connected())
            slot.clear();
        [[maybe_unused]] auto work = std::move(work_);
        auto handler = std::move(handler_);
        auto deliver = std::move(deliver_);
        auto result = std::move(result_);
        self.reset();
        std::move(deliver)(std::move(handler), std::move(result));
    }

private:
    Handler handler_;
    Executor executor_;
    decltype(track_work(std::declval<const Executor&>())) work_;
    group_work<asio::any_io_executor> group_work_;
    Deliver deliver_;
    completion result_;
    std::shared_ptr<operation_registry> registry_;
    operation_id id_;
};

/// The handler in a cancellation slot. Holds its operation only by id. Emitting only enqueues.
class canceller {
public:
    canceller(const group_ref& group, operation_id id) noexcept : group_(group), id_(id) {}
    void operator()(cancellation_type type) const noexcept {
        if (type == cancellation_type::none)
            return;
        const bool total = (type & cancellation_type::total) != cancellation_type::none;
        cancel_operation(group_, id_, total ? cancel_mode::stop_waiting : cancel_mode::stop_group);
    }

private:
    std::weak_ptr<group_state> group_;
    operation_id id_;
};

/// What an operation asks of its group once its handler is in place.
class request {
public:
    enum class kind { start, run, end, next, stop, line, lines };

    /// @param call  the name of the user's call, for the error about an empty group
    request(kind what, const char* call, std::optional<steady_duration> timeout = std::nullopt)
        : what_(what), call_(call), timeout_(timeout) {}
    /// A start that fails with `why`, because the group could not be made.
    explicit request(std::exception_ptr why) noexcept
        : what_(kind::start), error_(std::move(why)) {}

    /// @throws what the library throws; the caller completes the operation with that
    void send(const group_ref& group, receiver to) const {
        if (error_)
            std::rethrow_exception(error_);
        if (!group)
            throw_empty_group(call_);
        switch (what_) {
        case kind::start:
            return start_group(group, std::move(to));
        case kind::run:
            return run_group(group, std::move(to));
        case kind::next:
            return await_next(group, until(), std::move(to));
        case kind::line:
            return await_output(group, amount::one, until(), std::move(to));
        case kind::lines:
            return await_output(group, amount::all, until(), std::move(to));
        case kind::stop:
            request_stop(group);
            break;
        case kind::end:
            break;
        }
        await_end(group, until(), std::move(to));
    }

private:
    /// Counted from the initiation, which is when the operation is awaited.
    std::optional<time_point> until() const {
        if (!timeout_)
            return std::nullopt;
        return saturating_add(std::chrono::steady_clock::now(), *timeout_);
    }

    kind what_;
    const char* call_ = "";
    std::optional<steady_duration> timeout_;
    std::exception_ptr error_;
};

/// What an operation does once its handler is in place, and how it is cancelled. Holds no executor.
class group_job {
public:
    group_job(group_ref group, request wanted) noexcept
        : group_(std::move(group)), wanted_(std::move(wanted)) {}

    void send(receiver to) const { wanted_.send(group_, std::move(to)); }
    canceller cancelled_by(operation_id id) const noexcept { return {group_, id}; }
    const group_ref& group() const noexcept { return group_; }

private:
    group_ref group_;
    request wanted_;
};

/// All that an operation needs, copied when the operation is made, because the object that it is
/// about may be gone when the operation is awaited.
template <class Job>
class job_on {
public:
    /// @param w  the default of the handler's executor; empty: system_executor
    explicit job_on(Job j, group_executor w = group_executor()) noexcept
        : job(std::move(j)), where(std::move(w)) {}

    Job job;
    group_executor where;
};
using group_request = job_on<group_job>;

/// The initiation of every operation. A class, not a lambda, because GCC 12 destroys capturing
/// lambda temporaries twice inside co_await.
template <class Job, class Deliver>
class initiation {
public:
    initiation(job_on<Job> on, Deliver deliver)
        : on_(std::move(on)), deliver_(std::move(deliver)) {}

    /// A cancellation is handed over to the engine's thread. See kept_initiation.
    static constexpr bool cancels_on_any_thread = true;

    using executor_type = asio::any_io_executor;
    /// Where the completion runs when the handler has no executor.
    executor_type get_executor() const noexcept {
        return on_.where.registry() ? on_.where.executor() : erased<asio::system_executor>();
    }

    template <class Handler>
    void operator()(Handler&& given) {
        std::decay_t<Handler> handler(std::forward<Handler>(given));
        auto executor = executor_of(handler);
        if constexpr (names_context<decltype(executor)>)
            begin(std::move(handler), executor);
        else
            begin(relayed(std::move(handler), executor), get_executor());
    }

private:
    /// The handler's executor, else the group's. The handler is asked directly if possible, because
    /// associated_executor needs a system_executor for the empty group, which is slow to compile.
    template <class Handler>
    auto executor_of(const Handler& handler) const {
        if constexpr (has_executor<Handler>)
            return handler.get_executor();
        else
            return asio::get_associated_executor(handler, get_executor());
    }

    template <class Handler, class Executor>
    void begin(Handler handler, const Executor& executor) {
        auto allocator = asio::get_associated_allocator(handler);
        auto slot = detail::get_associated_cancellation_slot(handler);
        auto registry = registry_of(executor);
        using operation_type = operation<Handler, Executor, Deliver>;
        const operation_id id = next_operation_id();
        auto op = std::allocate_shared<operation_type>(allocator, std::move(handler), on_.where,
                                                       executor, std::move(deliver_), registry, id);
        if (slot.is_connected())
            slot.template emplace<decltype(on_.job.cancelled_by(id))>(on_.job.cancelled_by(id));
        if (!registry->add(id, std::move(op)))
            return;
        // A copy: once the operation is started, a handler on another thread may destroy *this.
        const auto job = on_.job;
        try {
            job.send(receiver{registry, id});
        } catch (...) {
            completion failed;
            failed.what = completion::kind::failed;
            failed.error = std::current_exception();
            registry->complete_now(id, failed);
        }
    }

    job_on<Job> on_;
    Deliver deliver_;
};

/// Begins an operation with a completion token, as asio::async_initiate does.
template <class Signature, class Token, class Job, class Deliver>
auto initiate(Token&& token, job_on<Job> on, Deliver deliver) {
    return asio::async_initiate<Token, Signature>(
        initiation<Job, Deliver>(std::move(on), std::move(deliver)),
        token);  // an lvalue: async_initiate moves from it unless Token is a reference
}

}  // namespace cohort::detail::inline COHORT_ASIO_VERSION
