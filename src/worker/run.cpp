// SPDX-License-Identifier: BSL-1.0
#include "worker/run.hpp"

#include "worker/report.hpp"

#include <cstdlib>

#include <cxxabi.h>

namespace cohort::worker {

void run(const mark& control, const std::function<detail::function_result()>& body) {
    report progress(control);
    progress.entered();
    bool good = false;
    try {
        good = progress.returned(body());
    } catch (abi::__forced_unwind&) {
        throw;  // pthread_exit in the function: the process lives on as long as its other threads
    } catch (...) {
        progress.raised(describe_current_exception());
    }
    std::exit(good ? 0 : 1);
}

}  // namespace cohort::worker
