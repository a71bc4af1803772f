// SPDX-License-Identifier: BSL-1.0
#include "output/lines/line_formatter.hpp"

#include <string_view>

namespace cohort::output {

void line_formatter::format(const detail::line_batch& batch, std::string& into) {
    for (const auto& part : batch) {
        if (is_mid_line_ && part.lost != detail::loss{})
            into += '\n';  // the loss gets a line of its own
        const auto found = tags_.find({part.run->index, part.run->from});
        tagger_.write(into, part, found == tags_.end() ? std::string_view() : found->second,
                      part.run->wall);
        if (!into.empty())
            is_mid_line_ = !ends_lines_ && into.back() != '\n';
    }
}

}  // namespace cohort::output
