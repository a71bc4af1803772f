// SPDX-License-Identifier: BSL-1.0
#pragma once

// Which Asio the headers use: standalone Asio, or with COHORT_BOOST_ASIO that of Boost. No other
// file knows the difference: in namespace cohort `asio` is the one that was chosen.
//
// Names that depend on the choice stand in an inline namespace of its own with Boost.Asio, because
// a program may have files of both kinds, and their inline functions must not be taken for each
// other. The compiled library has none of these names, so it serves both.
#ifdef COHORT_BOOST_ASIO

#include <utility>  // Boost 1.74 does not include it itself

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution/context_as.hpp>
#include <boost/asio/execution/executor.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#if __has_include(<boost/asio/cancellation_type.hpp>)
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/cancellation_type.hpp>
#define COHORT_HAS_CANCELLATION
#endif

#define COHORT_ASIO_NAMESPACE ::inline boost_asio
#define COHORT_ASIO_VERSION v0_1_boost_asio

namespace cohort COHORT_ASIO_NAMESPACE {

namespace asio = ::boost::asio;

}  // namespace cohort COHORT_ASIO_NAMESPACE

namespace cohort::detail::inline COHORT_ASIO_VERSION {

namespace chosen_asio = ::boost::asio;
using boost::system::system_error;

}  // namespace cohort::detail::inline COHORT_ASIO_VERSION

#else

#include <asio/any_io_executor.hpp>
#include <asio/associated_allocator.hpp>
#include <asio/associated_cancellation_slot.hpp>
#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/awaitable.hpp>
#include <asio/cancellation_type.hpp>
#include <asio/dispatch.hpp>
#include <asio/error.hpp>
#include <asio/execution/blocking.hpp>
#include <asio/execution/context.hpp>
#include <asio/execution/context_as.hpp>
#include <asio/execution/executor.hpp>
#include <asio/execution/outstanding_work.hpp>
#include <asio/execution_context.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>
#include <asio/prefer.hpp>
#include <asio/query.hpp>
#include <asio/strand.hpp>
#include <asio/system_error.hpp>
#include <asio/system_executor.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#define COHORT_HAS_CANCELLATION
#define COHORT_ASIO_NAMESPACE
#define COHORT_ASIO_VERSION v0_1

namespace cohort::detail::inline COHORT_ASIO_VERSION {

namespace chosen_asio = ::asio;
using asio::system_error;

}  // namespace cohort::detail::inline COHORT_ASIO_VERSION

#endif

// Boost before 1.77 has no cancellation of single operations. There no handler has a slot.
namespace cohort::detail::inline COHORT_ASIO_VERSION {

#ifdef COHORT_HAS_CANCELLATION

using asio::cancellation_type;
using asio::get_associated_cancellation_slot;

template <class Handler>
using cancellation_slot_of = asio::associated_cancellation_slot_t<Handler>;

#else

enum class cancellation_type { none, terminal, total };
constexpr cancellation_type operator&(cancellation_type a, cancellation_type b) noexcept {
    return a == b ? a : cancellation_type::none;
}

struct no_cancellation_slot {
    static constexpr bool is_connected() noexcept { return false; }
    static void clear() noexcept {}
    template <class Canceller, class... Args>
    static void emplace(Args&&...) noexcept {}
};

template <class Handler>
using cancellation_slot_of = no_cancellation_slot;

template <class Handler>
no_cancellation_slot get_associated_cancellation_slot(const Handler&) noexcept {
    return {};
}

#endif

}  // namespace cohort::detail::inline COHORT_ASIO_VERSION

#undef COHORT_HAS_CANCELLATION
