// SPDX-License-Identifier: BSL-1.0
#include "group/starts/start_exception.hpp"

#include <exception>
#include <new>
#include <string>
#include <system_error>

namespace cohort::groups {
namespace {

/// What the thrower wrote. spawn_error adds the error's own message again.
std::string text_of(const std::system_error& thrown) {
    std::string text = thrown.what();
    if (const auto message = ": " + thrown.code().message(); text.ends_with(message))
        text.resize(text.size() - message.size());
    return text;
}

detail::start_failure unexpected(const std::string& what, int index) {
    return {std::make_error_code(std::errc::operation_canceled), "preparing the worker: " + what,
            index, "exec"};
}

}  // namespace

detail::start_failure failure_of_exception(int index) {
    try {
        throw;
    } catch (const std::system_error& e) {
        return {e.code(), text_of(e), index, "exec"};
    } catch (const std::bad_alloc&) {
        return {std::make_error_code(std::errc::not_enough_memory), "preparing the worker", index,
                "memory"};
    } catch (const std::exception& e) {
        return unexpected(e.what(), index);
    } catch (...) {
        return unexpected("an exception that is no std::exception", index);
    }
}

}  // namespace cohort::groups
