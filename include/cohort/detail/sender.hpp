// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/asio.hpp>
#include <cohort/detail/stop_link.hpp>

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>
#include <version>

#if __has_include(<stdexec/execution.hpp>)
#include <stdexec/execution.hpp>
#elif defined(__cpp_lib_senders)
#include <execution>
#else
#error "cohort: use_sender needs std::execution or NVIDIA's <stdexec/execution.hpp>"
#endif

// An operation as a sender.
namespace cohort::detail::inline COHORT_ASIO_VERSION {

namespace senders {
#if __has_include(<stdexec/execution.hpp>)
using namespace stdexec;
using sender_tag = stdexec::sender_t;
using operation_tag = stdexec::operation_state_t;
#else
using namespace std::execution;
using std::get_stop_token;
using sender_tag = std::execution::sender_tag;
using operation_tag = std::execution::operation_state_tag;
#endif
}  // namespace senders

/// The callback type of a stop token. std::stop_token has no member for it before C++26.
template <class Token, class F>
struct stop_callback {
    using type = typename Token::template callback_type<F>;
};
template <class F>
struct stop_callback<std::stop_token, F> {
    using type = std::stop_callback<F>;
};

inline bool is_cancellation(const std::exception_ptr& error) noexcept {
    try {
        std::rethrow_exception(error);
    } catch (const system_error& failure) {
        return failure.code() == asio::error::operation_aborted;
    } catch (...) {
        return false;
    }
}

/// The receiver of an operation, and the stop callback that cancels it.
template <class Receiver>
class receiver_end {
public:
    explicit receiver_end(Receiver receiver) : receiver_(std::move(receiver)) {}

    auto stop_token() const { return senders::get_stop_token(senders::get_env(receiver_)); }
    void listen(std::shared_ptr<stop_link> link) {
        callback_.emplace(stop_token(), on_stop{std::move(link)});
    }
    /// The operation has ended. Whoever calls this may not use the operation's state any more.
    template <class... Values>
    void complete(const std::exception_ptr& error, Values&&... values) noexcept {
        callback_.reset();
        if (!error)
            senders::set_value(std::move(receiver_), std::forward<Values>(values)...);
        else
            fail(error);
    }
    void fail(const std::exception_ptr& error) noexcept {
        callback_.reset();
        if (is_cancellation(error))
            senders::set_stopped(std::move(receiver_));
        else
            senders::set_error(std::move(receiver_), std::exception_ptr(error));
    }
    void stopped() noexcept {
        callback_.reset();
        senders::set_stopped(std::move(receiver_));
    }

private:
    struct on_stop {
        void operator()() const { link->stop(); }
        std::shared_ptr<stop_link> link;
    };
    using token = std::remove_cvref_t<decltype(senders::get_stop_token(
        senders::get_env(std::declval<const Receiver&>())))>;

    Receiver receiver_;
    std::optional<typename stop_callback<token, on_stop>::type> callback_;
};

/// The handler of the operation. If it is destroyed without a call, as a context that ends does,
/// the receiver is stopped.
template <class Receiver, class... Values>
class sender_handler {
public:
    sender_handler(receiver_end<Receiver>& to, std::shared_ptr<stop_link> link) noexcept
        : to_(&to), link_(std::move(link)) {}
    sender_handler(sender_handler&& other) noexcept
        : to_(std::exchange(other.to_, nullptr)), link_(std::move(other.link_)) {}
    ~sender_handler() {
        if (to_ && link_->abandon())
            to_->stopped();
    }

    using cancellation_slot_type = stop_link::slot;
    stop_link::slot get_cancellation_slot() const noexcept { return stop_link::slot(link_); }

    void operator()(const std::exception_ptr& error, Values... values) {
        std::exchange(to_, nullptr)->complete(error, std::move(values)...);
    }

private:
    receiver_end<Receiver>* to_;
    std::shared_ptr<stop_link> link_;
};

/// Initiates the operation when it is started.
/// @tparam Initiate  initiates the operation with the handler that it is called with
template <class Receiver, class Initiate, class... Values>
class sender_operation {
public:
    using operation_state_concept = senders::operation_tag;

    sender_operation(Initiate initiate, Receiver receiver)
        : initiate_(std::move(initiate)), to_(std::move(receiver)) {}
    sender_operation(sender_operation&&) = delete;

    void start() & noexcept {
        if (to_.stop_token().stop_requested())
            return to_.stopped();
        std::shared_ptr<stop_link> link;
        std::exception_ptr error;
        try {
            link = std::make_shared<stop_link>(initiate_.where());
            sender_handler<Receiver, Values...> handler(to_, link);
            to_.listen(link);
            std::move(initiate_)(std::move(handler));
        } catch (...) {
            error = std::current_exception();
        }
        // From here on *this may be gone, unless the handler was destroyed during the initiation.
        if (!link || link->initiated())
            error ? to_.fail(error) : to_.stopped();
    }

private:
    Initiate initiate_;
    receiver_end<Receiver> to_;
};

/// An operation that has not been initiated. Can be connected once.
template <class Initiate, class... Values>
class [[nodiscard]] operation_sender {
public:
    using sender_concept = senders::sender_tag;
    using completion_signatures =
        senders::completion_signatures<senders::set_value_t(Values...),
                                       senders::set_error_t(std::exception_ptr),
                                       senders::set_stopped_t()>;

    explicit operation_sender(Initiate initiate) : initiate_(std::move(initiate)) {}

    template <class Receiver>
    sender_operation<Receiver, Initiate, Values...> connect(Receiver receiver) && {
        return {std::move(initiate_), std::move(receiver)};
    }

private:
    Initiate initiate_;
};

/// The initiation that Asio hands to a completion token, with its arguments.
template <class Initiation, class... Args>
class kept_initiation {
public:
    template <class I, class... A>
    explicit kept_initiation(std::in_place_t, I&& initiation, A&&... args)
        : initiation_(std::forward<I>(initiation)), args_(std::forward<A>(args)...) {}

    /// Where the operation may be cancelled: this library's on any thread, others, as that of
    /// asio::co_spawn, on their executor.
    stop_link::runner where() const {
        if constexpr (requires { Initiation::cancels_on_any_thread; })
            return {};
        else if constexpr (requires { initiation_.get_executor(); })
            return [executor = initiation_.get_executor()](std::function<void()> cancel) {
                asio::post(executor, std::move(cancel));
            };
        else
            return {};
    }

    template <class Handler>
    void operator()(Handler handler) && {
        std::apply(
            [&](Args&... args) { std::move(initiation_)(std::move(handler), std::move(args)...); },
            args_);
    }

private:
    Initiation initiation_;
    std::tuple<Args...> args_;
};

}  // namespace cohort::detail::inline COHORT_ASIO_VERSION
