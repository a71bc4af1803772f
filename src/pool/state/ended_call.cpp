// SPDX-License-Identifier: BSL-1.0
#include "pool/state/ended_call.hpp"

#include "protocol/record/error_json.hpp"

#include <utility>

namespace cohort::pools {

std::shared_ptr<const outcome> sent_error(const ended_call& call) {
    auto made = std::make_shared<outcome>();
    made->index = call.slot;
    made->pid = call.pid;
    auto error = protocol::read_error(call.answer.bytes, call.answer.bytes.size(), {});
    made->error = error ? std::move(*error) : error_record();
    return made;
}

}  // namespace cohort::pools
