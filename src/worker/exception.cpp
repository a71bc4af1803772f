// SPDX-License-Identifier: BSL-1.0
#include "worker/report.hpp"

#include <cohort/detail/codec_error.hpp>

#include <exception>
#include <string>
#include <typeinfo>

#include <cxxabi.h>

namespace cohort::worker {
namespace {

template <class Number>
std::string number_text(Number value) {
    return "a thrown number: " + std::to_string(value);
}

/// Rethrows the exception in hand and turns it into words.
std::string message_of_current() {
    try {
        throw;
    } catch (const std::exception& e) {
        return e.what() == nullptr ? "" : e.what();
    } catch (const std::string& text) {
        return text;
    } catch (const char* text) {
        return text == nullptr ? "" : text;
    } catch (int value) {
        return number_text(value);
    } catch (unsigned value) {
        return number_text(value);
    } catch (long value) {
        return number_text(value);
    } catch (unsigned long value) {
        return number_text(value);
    } catch (...) {
        return "unknown exception";
    }
}

}  // namespace

error_record describe_current_exception() noexcept {
    error_record error;
    try {
        const std::type_info* type =
            abi::__cxa_current_exception_type();  // null: not thrown by C++
        error.type = type == nullptr ? "unknown" : detail::type_name(*type);
        error.message = message_of_current();
        error.trace = error.type + ": " + error.message;
    } catch (...) {
        error.trace.clear();  // no memory for all of it; the reader makes up a trace
    }
    return error;
}

}  // namespace cohort::worker
