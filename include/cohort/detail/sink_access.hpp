// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cohort/detail/sink.hpp>
#include <cohort/sinks.hpp>

#include <concepts>

namespace cohort::detail::inline v0_1 {

/// How the library reads what the setters of sinks.hpp wrote.
struct sink_access {
    static const log_settings& settings_of(const logs& l) noexcept { return l.data_; }
    static input input_of(const inherit&) { return inherit_input(); }
    static input input_of(const bytes& b) { return b.data_; }
    static input input_of(const feed& f) { return f.data_; }
    template <class Sink>
    requires std::convertible_to<decltype(Sink::data_), sink>
    static sink data(const Sink& s) { return s.data_; }
};

}  // namespace cohort::detail::inline v0_1
