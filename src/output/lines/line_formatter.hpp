// SPDX-License-Identifier: BSL-1.0
#pragma once

#include "output/lines/tagger.hpp"

#include <cohort/output.hpp>

#include <map>
#include <string>
#include <utility>

namespace cohort::output {

/// Turns all lines of one target into its bytes, one batch after the other, and knows the tags of
/// their streams.
class line_formatter {
public:
    /// A stream of the worker with this index.
    using source = std::pair<int, cohort::stream>;

    explicit line_formatter(line_style style) noexcept
        : tagger_(style), ends_lines_(style.ends_lines) {}

    /// What stands before each line of a stream from now on. Without it: nothing.
    void set_tag(source of, std::string tag) { tags_.insert_or_assign(of, std::move(tag)); }
    /// Appends a batch to `into`.
    void format(const detail::line_batch& batch, std::string& into);

private:
    const tagger tagger_;
    const bool ends_lines_;
    std::map<source, std::string> tags_;
    bool is_mid_line_ = false;  // what was appended so far does not end with a newline
};

}  // namespace cohort::output
