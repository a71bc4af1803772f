// SPDX-License-Identifier: BSL-1.0
#include <cohort/detail/plan.hpp>
#include <cohort/errors.hpp>

namespace cohort::detail {

namespace {

[[noreturn]] void refuse(const char* text, const char* stage) {
    throw spawn_error(std::make_error_code(std::errc::not_supported), text, -1, stage);
}

}  // namespace

void require_supported(const group_settings& settings) {
    if (settings.method == start_method::fork)
        refuse("start_method::fork", "start_method");
    if (settings.method == start_method::forkserver)
        refuse("start_method::forkserver", "start_method");
    if (settings.daemon)
        refuse("daemon(true)", "daemon");
}

void refuse_closure() { refuse("closure, which needs start_method::fork", "start_method"); }

}  // namespace cohort::detail
