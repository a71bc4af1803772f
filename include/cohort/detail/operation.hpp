// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/asio.hpp>
#include <cohort/detail/border.hpp>
#include <cohort/detail/duration.hpp>
#include <cohort/detail/executors.hpp>

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace cohort::detail::inline COHORT_ASIO_VERSION {

/// The token of a call that names none: the call is awaited in a coroutine.
using default_token = asio::use_awaitable_t<asio::any_io_executor>;

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

/// How a call that is under way is cancelled. Has no effect on one that has completed.
using cancel_function = void (*)(const std::weak_ptr<void>& about, operation_id id,
                                 cancellation_type type) noexcept;

/// An asynchronous call of the library: what it is about, how it begins, how it is cancelled and
/// where it completes. Holds all that it needs, because the object that it is about may be gone
/// when the call is awaited. A copy may begin again, because Asio's deferred operations may.
class call {
public:
    /// @param about   what it asks; null: the handle is empty
    /// @param begin   begins it. What that throws, the call completes with.
    /// @param where   the default of the handler's executor; empty: system_executor
    template <class About, class Begin>
    call(std::shared_ptr<About> about, cancel_function cancel, Begin begin,
         group_executor where = group_executor())
        : about_(std::move(about)), cancel_(cancel), begin_(std::move(begin)),
          where_(std::move(where)) {}
    /// A call that fails with `why`.
    explicit call(const std::exception_ptr& why, group_executor where = group_executor())
        : begin_([why](const receiver&) { std::rethrow_exception(why); }),
          where_(std::move(where)) {}

    /// It waits at what it is about, where it would keep its place if its handler were destroyed.
    call keeps_place() && {
        keeps_place_ = true;
        return std::move(*this);
    }
    const group_executor& where() const noexcept { return where_; }
    void begin(const receiver& to) const { begin_(to); }

    /// The handler in a cancellation slot. Holds its operation only by id. Emitting only enqueues.
    class canceller {
    public:
        canceller(const call& of, operation_id id) noexcept
            : about_(of.about_), cancel_(of.cancel_), id_(id) {}
        void operator()(cancellation_type type) const noexcept {
            if (cancel_ != nullptr && type != cancellation_type::none)
                cancel_(about_, id_, type);
        }

    private:
        std::weak_ptr<void> about_;
        cancel_function cancel_;
        operation_id id_;
    };

    /// Gives up the place of an operation that is destroyed before it completes.
    class place {
    public:
        place(const call& of, operation_id id) noexcept
            : about_(of.keeps_place_ ? of.about_ : nullptr), cancel_(of.cancel_), id_(id) {}
        place(place&& other) noexcept = default;
        place& operator=(place&&) = delete;
        ~place() {
            if (about_)
                cancel_(about_, id_, cancellation_type::terminal);
        }
        void completed() noexcept { about_.reset(); }

    private:
        std::shared_ptr<void> about_;
        cancel_function cancel_;
        operation_id id_;
    };

private:
    std::shared_ptr<void> about_;
    cancel_function cancel_ = nullptr;
    std::function<void(const receiver&)> begin_;
    group_executor where_;
    bool keeps_place_ = false;
};

/// A call about what a handle holds.
/// @param refuse  throws for an empty handle, with the call's name
/// @param begin  called with the object and the receiver
template <class About, class Begin>
call call_about(std::shared_ptr<About> object, const char* name, void (*refuse)(const char*),
                cancel_function cancel, Begin begin, group_executor where) {
    const auto at = [object, name, refuse, begin = std::move(begin)](const receiver& to) {
        if (!object)
            refuse(name);
        begin(object, to);
    };
    return call(std::move(object), cancel, at, std::move(where));
}

/// When a call gives up. Counted from its initiation, which is when it is awaited.
inline std::optional<time_point> deadline_of(const std::optional<steady_duration>& timeout) {
    if (!timeout)
        return std::nullopt;
    return saturating_add(std::chrono::steady_clock::now(), *timeout);
}

/// An operation with its handler. `Deliver` turns the completion into the handler's arguments and
/// calls it.
template <class Handler, class Executor, class Deliver>
class operation final : public operation_base {
public:
    operation(Handler handler, const call& of, const Executor& executor, Deliver deliver,
              std::shared_ptr<operation_registry> registry, operation_id id)
        : handler_(std::move(handler)), executor_(executor), work_(track_work(executor)),
          group_work_(of.where().executor(),
                      of.where().registry() == registry && counts_as(executor, of.where())
                          ? nullptr
                          : of.where().registry(),
                      id),
          deliver_(std::move(deliver)), place_(of, id), registry_(std::move(registry)), id_(id) {}

    void post(std::shared_ptr<operation_base> self, const completion& result) override {
        result_ = result;
        const Executor executor = executor_;  // *this may be destroyed before post returns
        asio::post(executor, posted_operation(std::move(self)));
    }

    /// Frees the operation's memory before the handler is called, as Asio promises its users.
    void run(std::shared_ptr<operation_base> self) override {
        registry_->release(id_);
        if constexpr (!is_relayed<Handler>)
            clear_slot(handler_);
        place_.completed();
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
    call::place place_;
    completion result_;
    std::shared_ptr<operation_registry> registry_;
    operation_id id_;
};

/// The initiation of every call. A class, not a lambda, because GCC 12 destroys capturing lambda
/// temporaries twice inside co_await.
template <class Deliver>
class initiation {
public:
    initiation(call on, Deliver deliver) : on_(std::move(on)), deliver_(std::move(deliver)) {}

    /// A cancellation is handed over to the engine's thread. See kept_initiation.
    static constexpr bool cancels_on_any_thread = true;

    using executor_type = asio::any_io_executor;
    /// Where the completion runs when the handler has no executor.
    executor_type get_executor() const noexcept {
        return on_.where().registry() ? on_.where().executor() : erased<asio::system_executor>();
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
        auto op = std::allocate_shared<operation_type>(allocator, std::move(handler), on_, executor,
                                                       std::move(deliver_), registry, id);
        if (slot.is_connected())
            slot.template emplace<call::canceller>(on_, id);
        if (!registry->add(id, std::move(op)))
            return;
        // Once the operation is started, a handler on another thread may destroy *this.
        const call on = std::move(on_);
        try {
            on.begin(receiver{registry, id});
        } catch (...) {
            completion failed;
            failed.what = completion::kind::failed;
            failed.error = std::current_exception();
            registry->complete_now(id, failed);
        }
    }

    call on_;
    Deliver deliver_;
};

/// Begins a call with a completion token, as asio::async_initiate does.
template <class Signature, class Token, class Deliver>
auto initiate(Token&& token, call on, Deliver deliver) {
    return asio::async_initiate<Token, Signature>(
        initiation<Deliver>(std::move(on), std::move(deliver)),
        token);  // an lvalue: async_initiate moves from it unless Token is a reference
}

}  // namespace cohort::detail::inline COHORT_ASIO_VERSION
