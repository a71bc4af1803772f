// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/codec.hpp>
#include <cohort/detail/gcc12.hpp>
#include <cohort/detail/registration.hpp>
#include <cohort/detail/work_part.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace cohort {

namespace detail::inline v0_1 {

/// What a closure keeps for its copies, at a start.
struct kept_handles {
    kept_handles() = default;  // no aggregate, because GCC 12 destroys those twice inside co_await
    kept_handles(encoded_value made, std::shared_ptr<const void> held) noexcept
        : encoded(std::move(made)), handles(std::move(held)) {}
    encoded_value encoded;
    std::shared_ptr<const void> handles;
};

/// The result of closure().
template <class Callable>
class closure_work {
    using restore_kept = void (*)(std::span<const std::byte>, std::vector<attachment>);

public:
    explicit closure_work(const Callable& call) : call_(std::make_shared<Callable>(call)) {}
    explicit closure_work(Callable&& call) : call_(std::make_shared<Callable>(std::move(call))) {}

    /// Gives the workers the descriptors of shared memory and of queues that the callable has
    /// captured. Without it workers can use the memory, because a copy of a process has its
    /// mappings, but not send it on, and no queue. Name the result before co_await, because GCC 12
    /// destroys a temporary twice there.
    /// @param shared  shared arrays and values, queues and their ends, which it does not hold
    /// @throws codec_error  one of them can't be sent
    template <class... Shared>
    closure_work keep(const Shared&... shared) && {
        {
            // Encoded for each start, because a closure that has a name must not hold the ends of
            // queues: their streams could not end.
            const holding_scope lends(holding::weak);
            kept_ = [handles = std::tuple<Shared...>(shared...)] {
                const holding_scope holds(holding::firm);
                auto held = std::make_shared<const std::tuple<Shared...>>(handles);
                return kept_handles(encode_arguments(*held), held);
            };
        }
        (void)kept_();  // the error, if there is one
        restore_ = [](std::span<const std::byte> kept, std::vector<attachment> attachments) {
            // Decoding finds the memory mapped, and gives it its new descriptor.
            (void)decode_arguments<std::tuple<Shared...>>(kept, std::move(attachments));
        };
        return std::move(*this);
    }

    std::shared_ptr<Callable> callable() const { return call_.take(); }
    kept_handles kept() const { return kept_ ? kept_() : kept_handles(); }
    restore_kept restore() const noexcept { return restore_; }

private:
    work_part<Callable> call_;
    std::function<kept_handles()> kept_;
    restore_kept restore_ = nullptr;
};

}  // namespace detail::inline v0_1

/// Work for a group with start_method::fork: worker i calls `call(i)` in a forked copy of this
/// process. Pass the result to spawn, run or async_spawn. The value that a call returned is in
/// `outcome::result<T>()`; an exception that left a call is thrown by group::join, as
/// process_raised_exception.
///
/// The worker has only one thread, a copy of a thread of the library. A lock that another thread
/// held at the fork stays locked, and thread_local variables are fresh; start_method::fork says
/// more. Where that is too dangerous, use function<Fn> with start_method::forkserver.
/// @param call  a callable `T call(int index)`, kept until the group has started. If its copy
///              constructor throws, that exception leaves closure, or spawn when the closure has a
///              name. Such a closure holds captured ends of queues weakly after its first start.
/// @throws spawn_error  thrown by spawn, not here: options::start_method is not fork
/// @thread_safety safe.
/// @source start_processes(fn, start_method="fork")
template <class Callable>
auto closure(Callable&& call) {
    using callable = std::decay_t<Callable>;
    static_assert(std::is_invocable_v<callable&, int>,
                  "cohort: closure takes a callable(int index)");
    static_assert(detail::safe_as_temporary<Callable>, "GCC 12: name the lambda first");
    return detail::closure_work<callable>(std::forward<Callable>(call));
}

}  // namespace cohort
