// SPDX-License-Identifier: BSL-1.0
#include "protocol/order/child_step.hpp"

namespace cohort::protocol {

const char* to_string(setting s) noexcept {
    switch (s) {
    case setting::nice:
        return "nice";
    case setting::io_priority:
        return "io_priority";
    case setting::scheduling:
        return "scheduling";
    case setting::oom_score_adj:
        return "oom_score_adj";
    case setting::limit:
        return "limit";
    case setting::groups:
        return "groups";
    case setting::user:
        return "user";
    case setting::no_new_privileges:
        return "no_new_privileges";
    case setting::name:
        return "name";
    }
    return "unknown";
}

}  // namespace cohort::protocol
