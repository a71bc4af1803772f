// SPDX-License-Identifier: BSL-1.0
#include <cohort/sharing.hpp>

namespace cohort {

sharing_error::sharing_error(std::error_code code, const std::string& text)
    : std::system_error(code), text_(std::make_shared<const std::string>(text)) {}

sharing_error::~sharing_error() = default;

const char* sharing_error::what() const noexcept { return text_->c_str(); }

}  // namespace cohort
