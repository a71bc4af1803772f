// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/detail/registration.hpp>

#include <cstddef>
#include <span>
#include <type_traits>

namespace cohort {

namespace detail::inline v0_1 {

/// Its place in the list of functions of this program, called without anything.
template <auto Fn>
struct registered_preload {
    static function_result invoke(int, std::span<const std::byte>) {
        Fn();
        return {};
    }
    inline static function_node node{&invoke};
};

COHORT_API void add_preload(const function_node& node);

}  // namespace detail::inline v0_1

/// Lets the fork server call `Fn()` once, before it makes its first worker: to load a model or warm
/// a cache that all workers then have, at no cost but that of the pages they change.
///
/// The server is started by the first group with start_method::forkserver; call this before that. A
/// later call takes effect when the server has died and is started anew. What `Fn` throws, or a
/// thread that it leaves running, is a spawn_error of the groups that needed the server, stage
/// "forkserver". Processes that it starts end with the server. Exit hooks and static destructors
/// that it registers run in each worker that leaves by exit, never in the server.
/// @tparam Fn  a function without parameters, or a lambda without captures
/// @par Thread safety  safe.
/// @par Source  multiprocessing.set_forkserver_preload; differs: a function, checked at
/// compile time.
template <auto Fn>
void forkserver_preload() {
    static_assert(std::is_invocable_v<decltype(Fn)>,
                  "cohort: forkserver_preload takes a function without parameters");
    detail::add_preload(detail::registered_preload<Fn>::node);
}

}  // namespace cohort
