// SPDX-License-Identifier: BSL-1.0
#include <cohort/errors.hpp>

// As for the exceptions of groups in group_errors.cpp, the destructors are here so that each class
// has its type information in one module.
namespace cohort {

codec_error::~codec_error() = default;

result_error::~result_error() = default;

sharing_error::sharing_error(std::error_code code, const std::string& text)
    : std::system_error(code), text_(std::make_shared<const std::string>(text)) {}
sharing_error::~sharing_error() = default;

const char* sharing_error::what() const noexcept { return text_->c_str(); }

broken_queue::broken_queue(const std::string& text)
    : std::system_error(std::make_error_code(std::errc::broken_pipe), text) {}
broken_queue::~broken_queue() = default;

broken_barrier::broken_barrier(const std::string& text, int index)
    : std::runtime_error(text), index_(index) {}
broken_barrier::~broken_barrier() = default;

}  // namespace cohort
