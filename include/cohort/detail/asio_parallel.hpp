// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/asio.hpp>

// What first_of needs of Asio. Boost before 1.77 does not have it.
#ifdef COHORT_BOOST_ASIO

#if __has_include(<boost/asio/experimental/parallel_group.hpp>)
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#define COHORT_HAS_PARALLEL_GROUP
#endif

#else

#include <asio/bind_cancellation_slot.hpp>
#include <asio/bind_executor.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>
#include <asio/experimental/deferred.hpp>
#include <asio/experimental/parallel_group.hpp>
#define COHORT_HAS_PARALLEL_GROUP

#endif
