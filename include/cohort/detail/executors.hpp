// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/asio.hpp>
#include <cohort/detail/completion_service.hpp>

#include <concepts>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

// Functions that operations need for executors, of either of Asio's executor models.
namespace cohort::detail::inline COHORT_ASIO_VERSION {

using context_property = asio::execution::context_as_t<asio::execution_context&>;

/// False for executors that hide their context, such as any_completion_executor.
template <class Executor>
constexpr bool names_context = asio::can_query<const Executor&, context_property>::value ||
                               requires(const Executor& executor) { executor.context(); };

/// Handlers that have an executor of their own, as those of coroutines do.
template <class Handler>
concept has_executor = requires(const Handler& handler) {
    { handler.get_executor() } -> std::same_as<typename Handler::executor_type>;
};

/// A default-constructed Executor as any_io_executor. A template, because it is slow to compile:
/// only the files that call it pay for it.
template <class Executor>
asio::any_io_executor erased() {
    return asio::any_io_executor(Executor());
}

/// The execution context behind an executor of either of Asio's executor models.
template <class Executor>
asio::execution_context& context_of(const Executor& executor) {
    if constexpr (asio::can_query<const Executor&, context_property>::value)
        return asio::query(executor, context_property());
    else
        return executor.context();
}

/// The registry of the context behind an executor.
template <class Executor>
std::shared_ptr<operation_registry> registry_of(const Executor& executor) {
    auto& context = context_of(executor);
    // A context shuts down its youngest service first. The service of strands does not bear posts
    // from the engine's thread while it shuts down. So ours must go first, and a strand is made
    // before it.
    if (!asio::has_service<completion_service>(context))
        (void)asio::strand<Executor>(executor);
    return asio::use_service<completion_service>(context).registry();
}

/// A group's executor, the default of all its handlers, and the registry of that executor's
/// context, which knows whether the context still exists.
class group_executor {
public:
    group_executor() noexcept = default;  // of the empty group
    /// A template, because otherwise it would be compiled in every file that includes this one.
    template <std::same_as<asio::any_io_executor> Executor>
    explicit group_executor(Executor executor)
        : executor_(std::move(executor)), registry_(registry_of<Executor>(executor_)) {}

    /// Empty when the group is.
    const asio::any_io_executor& executor() const noexcept { return executor_; }
    const std::shared_ptr<operation_registry>& registry() const noexcept { return registry_; }

private:
    asio::any_io_executor executor_;
    std::shared_ptr<operation_registry> registry_;
};

/// Outstanding work of the group's executor, kept while an operation completes in another context.
template <class Executor>
class group_work {
public:
    group_work(const Executor& executor, std::shared_ptr<operation_registry> registry,
               operation_id id)
        : registry_(std::move(registry)), id_(id) {
        if (!registry_)
            return;
        if (const operation_registry::use here(*registry_); here)
            registry_->keep_work(id_, std::make_shared<Executor>(asio::prefer(
                                          executor, asio::execution::outstanding_work.tracked)));
    }
    group_work(const group_work&) = delete;
    group_work& operator=(const group_work&) = delete;
    ~group_work() {
        if (registry_)
            registry_->drop_work(id_);
    }

private:
    std::shared_ptr<operation_registry> registry_;
    operation_id id_;
};

/// An object that counts as outstanding work of an executor of either model. Not always an
/// executor_work_guard, because Asio 1.22 mistakes a strand of any_io_executor for the old model.
template <class Executor>
auto track_work(const Executor& executor) {
    if constexpr (asio::execution::is_executor<Executor>::value)
        return asio::prefer(executor, asio::execution::outstanding_work.tracked);
    else
        return asio::executor_work_guard<Executor>(executor);
}

/// Whether outstanding work of an executor keeps its context at work as that of the group's does.
template <class Executor>
bool counts_as(const Executor& executor, const group_executor& group) {
    if constexpr (std::is_same_v<Executor, asio::any_io_executor>)
        return executor == group.executor();
    else
        return !asio::execution::is_executor<Executor>::value ||
               asio::can_require<Executor, asio::execution::outstanding_work_t::tracked_t>::value;
}

/// Empties the cancellation slot of a handler, on the handler's executor, before the handler is
/// called.
template <class Handler>
void clear_slot(const Handler& handler) {
    auto slot = detail::get_associated_cancellation_slot(handler);
    if (slot.is_connected())
        slot.clear();
}

/// A handler whose executor hides its context, so that no registry can keep the handler. It is
/// called on the group's executor and goes on to its own. The owner of that executor's context must
/// keep the context alive.
template <class Handler, class Executor>
class relayed {
public:
    relayed(Handler handler, const Executor& executor)
        : handler_(std::move(handler)), executor_(executor), work_(track_work(executor)) {}

    using allocator_type = asio::associated_allocator_t<Handler>;
    allocator_type get_allocator() const noexcept {
        return asio::get_associated_allocator(handler_);
    }
    using cancellation_slot_type = cancellation_slot_of<Handler>;
    cancellation_slot_type get_cancellation_slot() const noexcept {
        return detail::get_associated_cancellation_slot(handler_);
    }

    void operator()(std::exception_ptr error) {
        asio::dispatch(executor_,
                       [handler = std::move(handler_), error = std::move(error)]() mutable {
                           clear_slot(handler);
                           std::move(handler)(std::move(error));
                       });
    }
    template <class Value>
    void operator()(std::exception_ptr error, Value value) {
        asio::dispatch(executor_, [handler = std::move(handler_), error = std::move(error),
                                   value = std::move(value)]() mutable {
            clear_slot(handler);
            std::move(handler)(std::move(error), std::move(value));
        });
    }

private:
    Handler handler_;
    Executor executor_;
    decltype(track_work(std::declval<const Executor&>())) work_;
};

template <class Handler>
inline constexpr bool is_relayed = false;
template <class Handler, class Executor>
inline constexpr bool is_relayed<relayed<Handler, Executor>> = true;

}  // namespace cohort::detail::inline COHORT_ASIO_VERSION
