// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/asio.hpp>

// What first_of needs of Asio. Boost before 1.77 does not have it. Newer ones have `deferred` in
// another place.
#ifdef COHORT_BOOST_ASIO

#if __has_include(<boost/asio/experimental/parallel_group.hpp>)
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#if __has_include(<boost/asio/deferred.hpp>)
#include <boost/asio/deferred.hpp>
#else
#include <boost/asio/experimental/deferred.hpp>
#define COHORT_DEFERRED_IS_EXPERIMENTAL
#endif
#define COHORT_HAS_PARALLEL_GROUP
#endif

#else

#include <asio/bind_cancellation_slot.hpp>
#include <asio/bind_executor.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>
#include <asio/experimental/parallel_group.hpp>
#if __has_include(<asio/deferred.hpp>)
#include <asio/deferred.hpp>
#else
#include <asio/experimental/deferred.hpp>
#define COHORT_DEFERRED_IS_EXPERIMENTAL
#endif
#define COHORT_HAS_PARALLEL_GROUP

#endif

#ifdef COHORT_HAS_PARALLEL_GROUP

namespace cohort::detail::inline COHORT_ASIO_VERSION {

#ifdef COHORT_DEFERRED_IS_EXPERIMENTAL
using chosen_asio::experimental::deferred;
#undef COHORT_DEFERRED_IS_EXPERIMENTAL
#else
using chosen_asio::deferred;
#endif

}  // namespace cohort::detail::inline COHORT_ASIO_VERSION

#endif
