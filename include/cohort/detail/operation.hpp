// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/executors.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/associated_allocator.hpp>
#include <asio/associated_cancellation_slot.hpp>
#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/cancellation_type.hpp>
#include <asio/post.hpp>

#include <memory>
#include <type_traits>
#include <utility>

namespace cohort::detail::inline v0_1 {

/// An operation with its handler. `Deliver` turns the completion into the handler's arguments and
/// calls it.
template <class Handler, class Executor, class Deliver>
class operation final : public operation_base {
public:
    operation(Handler handler, const group_executor& where, const Executor& executor,
              Deliver deliver, std::shared_ptr<operation_registry> registry, operation_id id)
        : handler_(std::move(handler)), executor_(executor), work_(track_work(executor)),
          group_work_(where, registry, id), deliver_(std::move(deliver)),
          registry_(std::move(registry)), id_(id) {}

    void post(std::shared_ptr<operation_base> self, const completion& result) override {
        result_ = result;
        const Executor executor = executor_;  // this may be destroyed before post returns
        asio::post(executor, posted(std::static_pointer_cast<operation>(std::move(self))));
    }

private:
    /// What runs on the handler's executor. Without the handler's allocator: that may be the user's
    /// own, for his threads only, and this is posted by the engine's thread.
    class posted {
    public:
        explicit posted(std::shared_ptr<operation> op) noexcept : operation_(std::move(op)) {}
        void operator()() {
            check_handler_thread();
            operation::run(std::move(operation_));
        }

    private:
        std::shared_ptr<operation> operation_;
    };

    /// Frees the operation's memory before the handler is called, as Asio promises its users.
    static void run(std::shared_ptr<operation> self) {
        self->registry_->release(self->id_);
        auto slot = asio::get_associated_cancellation_slot(self->handler_);
        if (slot.is_connected())
            slot.clear();
        [[maybe_unused]] auto work = std::move(self->work_);
        auto handler = std::move(self->handler_);
        auto deliver = std::move(self->deliver_);
        auto result = std::move(self->result_);
        self.reset();
        std::move(deliver)(std::move(handler), std::move(result));
    }

    Handler handler_;
    Executor executor_;
    decltype(track_work(std::declval<const Executor&>())) work_;
    group_work group_work_;
    Deliver deliver_;
    completion result_;
    std::shared_ptr<operation_registry> registry_;
    operation_id id_;
};

/// What a cancellation slot holds: a weak name of the operation. Emitting only enqueues.
class canceller {
public:
    canceller(const group_ref& group, operation_id id) noexcept : group_(group), id_(id) {}
    void operator()(asio::cancellation_type type) const noexcept {
        if (type == asio::cancellation_type::none)
            return;
        const bool total = (type & asio::cancellation_type::total) != asio::cancellation_type::none;
        cancel_operation(group_, id_, total ? cancel_mode::stop_waiting : cancel_mode::stop_group);
    }

private:
    std::weak_ptr<group_state> group_;
    operation_id id_;
};

/// The initiation of every operation. A class, not a lambda: GCC 12 destroys capturing lambda
/// temporaries twice inside co_await. `Start` is called with the receiver once the handler is in
/// place.
template <class Deliver, class Start>
class initiation {
public:
    initiation(group_ref group, group_executor where, Deliver deliver, Start start)
        : group_(std::move(group)), group_executor_(std::move(where)), deliver_(std::move(deliver)),
          start_(std::move(start)) {}

    using executor_type = asio::any_io_executor;
    executor_type get_executor() const noexcept { return group_executor_.executor(); }

    template <class Handler>
    void operator()(Handler&& given) {
        std::decay_t<Handler> handler(std::forward<Handler>(given));
        auto executor = asio::get_associated_executor(handler, group_executor_.executor());
        if constexpr (tells_context<decltype(executor)>)
            begin(std::move(handler), executor);
        else
            begin(relayed(std::move(handler), executor), group_executor_.executor());
    }

private:
    template <class Handler, class Executor>
    void begin(Handler handler, const Executor& executor) {
        auto allocator = asio::get_associated_allocator(handler);
        auto slot = asio::get_associated_cancellation_slot(handler);
        auto registry = registry_of(executor);
        using operation_type = operation<Handler, Executor, Deliver>;
        const operation_id id = next_operation_id();
        auto op =
            std::allocate_shared<operation_type>(allocator, std::move(handler), group_executor_,
                                                 executor, std::move(deliver_), registry, id);
        if (slot.is_connected())
            slot.template emplace<canceller>(group_, id);
        if (!registry->add(id, std::move(op)))
            return;
        // Copies: once it is started, a handler on another thread may destroy what holds this.
        const auto group = group_;
        const auto start = start_;
        try {
            start(group, receiver{registry, id});
        } catch (...) {
            completion failed;
            failed.what = completion::kind::failed;
            failed.error = std::current_exception();
            registry->complete_now(id, failed);
        }
    }

    group_ref group_;
    group_executor group_executor_;
    Deliver deliver_;
    Start start_;
};

/// Starts an operation with a completion token, as asio::async_initiate does.
template <class Signature, class Token, class Deliver, class Start>
auto start_operation(Token&& token, group_ref group, group_executor where, Deliver deliver,
                     Start start) {
    return asio::async_initiate<Token, Signature>(
        initiation<Deliver, Start>(std::move(group), std::move(where), std::move(deliver),
                                   std::move(start)),
        token);  // by its name: async_initiate moves from it unless Token is a reference
}

}  // namespace cohort::detail::inline v0_1
