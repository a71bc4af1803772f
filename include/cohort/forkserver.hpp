// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/detail/registration.hpp>

#include <cstddef>
#include <span>
#include <type_traits>

namespace cohort {

namespace detail::inline v0_1 {

/// Puts Fn, which takes no arguments, into the list of this program's functions.
template <auto Fn>
struct registered_preload {
    static function_result invoke(int, std::span<const std::byte>,
                                  std::vector<detail::attachment>) {
        Fn();
        return {};
    }
    inline static function_node node{&invoke};
};

COHORT_API void add_preload(const function_node& node);

}  // namespace detail::inline v0_1

/// Lets the fork server call `Fn()` once, before it makes its first worker. `Fn` may, for example,
/// load a model or warm a cache. All workers then have it, and share its memory as long as they do
/// not change it.
///
/// The first group with start_method::forkserver starts the server, so call this before that. A
/// later call takes effect only when the server has died and another one is started. If `Fn` throws
/// or leaves a thread running, the groups that need the server get a spawn_error, stage
/// "forkserver". Processes that `Fn` starts end with the server. Exit handlers and static
/// destructors that `Fn` registers run in each worker that ends by exit, never in the server.
/// @tparam Fn  a function without parameters, or a lambda without captures
/// @thread_safety safe.
/// @source multiprocessing.set_forkserver_preload; differs: takes a function, checked at
/// compile time.
template <auto Fn>
void forkserver_preload() {
    static_assert(std::is_invocable_v<decltype(Fn)>,
                  "cohort: forkserver_preload takes a function without parameters");
    detail::add_preload(detail::registered_preload<Fn>::node);
}

}  // namespace cohort
