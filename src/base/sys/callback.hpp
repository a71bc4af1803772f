// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace cohort::base {

template <class Signature>
class callback;

/// A function that is called later. It differs from std::function: what it holds need not be
/// copyable, and its copies share what they hold, so a copy never fails.
template <class R, class... Args>
class callback<R(Args...)> {
public:
    callback() noexcept = default;
    callback(std::nullptr_t) noexcept {}
    template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, callback> &&
             std::is_invocable_r_v<R, std::decay_t<F>&, Args...>) callback(F&& f)
        : body_(std::make_shared<function<std::decay_t<F>>>(std::forward<F>(f))) {}

    explicit operator bool() const noexcept { return body_ != nullptr; }
    R operator()(Args... args) const { return body_->call(std::forward<Args>(args)...); }

private:
    struct body {
        virtual ~body() = default;
        virtual R call(Args... args) = 0;
    };
    template <class F>
    struct function final : body {
        template <class From>
        explicit function(From&& from) : f(std::forward<From>(from)) {}
        R call(Args... args) override {
            if constexpr (std::is_void_v<R>)
                f(std::forward<Args>(args)...);
            else
                return f(std::forward<Args>(args)...);
        }
        F f;
    };

    std::shared_ptr<body> body_;
};

}  // namespace cohort::base
