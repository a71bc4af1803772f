// SPDX-License-Identifier: BSL-1.0
#pragma once

// nlohmann-json in a namespace of this library, with the library's own settings. The program may
// use another version, or other macros, and the linker must not mix the two. src/ includes
// nlohmann-json only here. A file that includes this header must not include a public header that
// includes nlohmann-json for the user (codec, function).

#ifdef INCLUDE_NLOHMANN_JSON_HPP_
#error "nlohmann-json is already included with the user's namespace"
#endif

#define NLOHMANN_JSON_NAMESPACE_BEGIN                                                              \
    namespace cohort::base::bundled {                                                              \
    namespace nlohmann {
#define NLOHMANN_JSON_NAMESPACE_END                                                                \
    }                                                                                              \
    }
#define NLOHMANN_JSON_NAMESPACE cohort::base::bundled::nlohmann

namespace cohort::base::bundled::nlohmann {}
namespace nlohmann = cohort::base::bundled::nlohmann;

#include <nlohmann/json.hpp>

namespace cohort::base {
using json = bundled::nlohmann::json;
}
