// SPDX-License-Identifier: BSL-1.0
#include "protocol/record/traceback.hpp"

#include "base/text/text.hpp"

#include <cohort/exit_status.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <ranges>
#include <span>
#include <string>

#include <csignal>

namespace cohort::protocol {
namespace {

constexpr std::string_view header = "Traceback (most recent call last):\n";
constexpr std::string_view between =
    "\n\nThe above exception was the direct cause of the following exception:\n\n";
constexpr int shown_repeats = 3;  // Python's _RECURSIVE_CUTOFF

/// The calls, a line each. Repeated lines, as in a recursion, are counted instead of written.
std::string calls_of(const std::vector<stack_frame>& frames) {
    std::string text(frames.empty() ? "" : header);
    std::string last;
    int count = 0;
    const auto end_run = [&] {
        if (count > shown_repeats)
            text += fmt::format("  [Previous line repeated {} more time{}]\n",
                                count - shown_repeats, count - shown_repeats == 1 ? "" : "s");
    };
    for (const stack_frame& frame : frames) {
        std::string line = "  " + base::clean(to_string(frame)) + "\n";
        if (line != last) {
            end_run();
            last = std::move(line);
            count = 0;
        }
        if (++count <= shown_repeats)
            text += last;
    }
    end_run();
    return text;
}

/// Whether the trace says more than the closing line and there are no frames: a program in another
/// language, or an earlier reader, has written it.
bool has_own_words(const error_record& error) {
    return error.frames.empty() && !error.trace.empty() && error.trace != closing_line(error) &&
           error.trace != error.message;
}

/// The worker that the error is from, if it is from one, then the calls; without the closing line.
std::string introduction(const error_record& error) {
    std::string text;
    if (error.worker >= 0)
        text = fmt::format("In worker {} (pid {}) of its own group:\n", error.worker, error.pid);
    return text + calls_of(error.frames);
}

/// The nested errors up to the first that a message already contains: the message of a group's
/// failure contains the trace of its worker.
std::span<const error_record> causes_to_show(const error_record& error) {
    const std::span all(error.nested);
    const error_record* shown_by = &error;
    for (std::size_t i = 0; i < all.size(); shown_by = &all[i], ++i)
        if (all[i].worker >= 0 && !all[i].trace.empty() &&
            base::contains(shown_by->message, all[i].trace))
            return all.first(i);
    return all;
}

/// `text`, then `words`. The text is shortened so that the end of `words` is never cut.
std::string closed_by(const std::string& text, std::string_view words) {
    const std::string_view last = base::tail_of(words, base::text_limit);
    return base::bounded(text, base::text_limit - last.size()).append(last);
}

/// closed_by() for a closing line. A long line is shortened so that a quarter is left to the calls.
std::string closed_by_line(const std::string& text, std::string_view line) {
    return closed_by(
        text, base::bounded(line, base::text_limit - std::min(text.size(), base::text_limit / 4)));
}

const char* reason_of(int signal, int code) noexcept {
    struct reason {
        int signal;  // 0: any signal
        int code;
        const char* text;
    };
    static constexpr reason reasons[] = {
        {SIGSEGV, SEGV_MAPERR, "address not mapped"},
        {SIGSEGV, SEGV_ACCERR, "no permission for the address"},
        {SIGSEGV, SEGV_BNDERR, "failed address bound check"},
        {SIGSEGV, SEGV_PKUERR, "denied by a protection key"},
        {SIGBUS, BUS_ADRALN, "misaligned address"},
        {SIGBUS, BUS_ADRERR, "no such physical address"},
        {SIGBUS, BUS_OBJERR, "hardware error of the object"},
        {SIGBUS, BUS_MCEERR_AR, "hardware memory error"},
        {SIGBUS, BUS_MCEERR_AO, "hardware memory error, not consumed"},
        {SIGILL, ILL_ILLOPC, "illegal opcode"},
        {SIGILL, ILL_ILLOPN, "illegal operand"},
        {SIGILL, ILL_ILLADR, "illegal addressing mode"},
        {SIGILL, ILL_ILLTRP, "illegal trap"},
        {SIGILL, ILL_PRVOPC, "privileged opcode"},
        {SIGILL, ILL_PRVREG, "privileged register"},
        {SIGILL, ILL_COPROC, "coprocessor error"},
        {SIGILL, ILL_BADSTK, "internal stack error"},
        {SIGFPE, FPE_INTDIV, "integer division by zero"},
        {SIGFPE, FPE_INTOVF, "integer overflow"},
        {SIGFPE, FPE_FLTDIV, "floating-point division by zero"},
        {SIGFPE, FPE_FLTOVF, "floating-point overflow"},
        {SIGFPE, FPE_FLTUND, "floating-point underflow"},
        {SIGFPE, FPE_FLTRES, "inexact floating-point result"},
        {SIGFPE, FPE_FLTINV, "invalid floating-point operation"},
        {SIGFPE, FPE_FLTSUB, "subscript out of range"},
        {0, SI_USER, "sent by kill"},
        {0, SI_TKILL, "sent by the process itself"},
        {0, SI_QUEUE, "sent by sigqueue"},
        {0, SI_KERNEL, "sent by the kernel"},
    };
    for (const reason& known : reasons)
        if ((known.signal == 0 || known.signal == signal) && known.code == code)
            return known.text;
    return nullptr;
}

/// Only a fault has an address. With SI_KERNEL the kernel does not know the address.
bool has_address(const crash_record& crash) noexcept {
    return crash.signal != SIGABRT && crash.code > 0 && crash.code != SI_KERNEL;
}

}  // namespace

std::string closing_line(const error_record& error) {
    std::string line = error.type;
    if (!error.category.empty())
        line += fmt::format("{}[{}:{}]", line.empty() ? "" : " ", error.category, error.code);
    if (!line.empty() && !error.message.empty())
        line += ": ";
    return line + error.message;
}

std::string traceback_of(const error_record& error) {
    std::string causes;
    for (const auto& entry : std::views::reverse(causes_to_show(error))) {
        causes += introduction(entry);
        causes += has_own_words(entry) ? entry.trace : closing_line(entry);
        causes += between;
    }
    // A trace that this function made before already begins with the causes.
    if (has_own_words(error))
        return closed_by(error.trace.starts_with(causes) ? "" : causes, error.trace);
    return closed_by_line(causes + introduction(error), closing_line(error));
}

std::string traceback_of(const crash_record& crash) {
    std::string line = exit_status::from_signal(crash.signal, false).signal_name();
    if (has_address(crash))
        line += fmt::format(" at address {:#x}", crash.address);
    if (const char* reason = reason_of(crash.signal, crash.code))
        line += fmt::format(" ({})", reason);
    return closed_by(calls_of(crash.frames), line);
}

}  // namespace cohort::protocol
