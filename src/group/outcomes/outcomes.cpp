// SPDX-License-Identifier: BSL-1.0
#include "group/outcomes/outcomes.hpp"

namespace cohort::groups {
namespace {

constexpr unsigned bit(part p) noexcept { return static_cast<unsigned>(p); }
constexpr unsigned always = bit(part::record) | bit(part::symbols) | bit(part::output);

}  // namespace

outcomes::outcomes(int workers, report of_group)
    : untaken_(workers),
      report_(of_group == report::wanted ? report_state::due : report_state::none) {}

void outcomes::add(int end) {
    missing_[end] = always;
    order_.push_back(end);
}

void outcomes::note_restart(int end) {
    if (missing_.contains(end))
        not_last_.insert(end);
    else
        ++untaken_;
}

void outcomes::wants_log(int end) {
    if (const auto found = missing_.find(end); found != missing_.end())
        found->second |= bit(part::log);
}

bool outcomes::note_part(int end, part p) {
    const auto found = missing_.find(end);
    if (found == missing_.end() || (found->second & bit(p)) == 0)
        return false;
    found->second &= ~bit(p);
    return found->second == bit(part::log);
}

bool outcomes::is_missing(int end, part p) const {
    const auto found = missing_.find(end);
    return found != missing_.end() && (found->second & bit(p)) != 0;
}

void outcomes::note_report() noexcept { report_ = report_state::none; }

void outcomes::forget_report() noexcept {
    if (report_ == report_state::due)
        report_ = report_state::none;
}

outcome_step outcomes::next() noexcept {
    if (order_.empty() || missing_.find(first())->second != 0)
        return outcome_step::wait;
    if (untaken_ > 1 || report_ == report_state::none || not_last_.contains(first()))
        return outcome_step::publish;
    if (report_ == report_state::begun)
        return outcome_step::wait;
    report_ = report_state::begun;
    return outcome_step::write_report;
}

int outcomes::take_first() {
    const int end = first();
    missing_.erase(end);
    order_.pop_front();
    if (not_last_.erase(end) == 0)
        --untaken_;
    return end;
}

const char* to_string(outcome_step s) noexcept {
    switch (s) {
    case outcome_step::wait:
        return "wait";
    case outcome_step::write_report:
        return "write_report";
    case outcome_step::publish:
        return "publish";
    }
    return "unknown";
}

}  // namespace cohort::groups
