// SPDX-License-Identifier: BSL-1.0
#include "base/sys/memfd.hpp"
#include "protocol/trace/modules.hpp"
#include "protocol/trace/stack.hpp"

#include <ucontext.h>

namespace cohort::protocol {
namespace {

struct registers {
    bool known = false;
    std::uintptr_t instruction = 0;
    std::uintptr_t stack = 0;
    std::uintptr_t link = 0;  // the return address, or where on the stack it is (x86-64)
};

registers registers_of(const void* context) noexcept {
    const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
    const auto stack = static_cast<std::uintptr_t>(machine.gregs[REG_RSP]);
    return {true, static_cast<std::uintptr_t>(machine.gregs[REG_RIP]), stack, stack};
#elif defined(__aarch64__)
    return {true, static_cast<std::uintptr_t>(machine.pc), static_cast<std::uintptr_t>(machine.sp),
            static_cast<std::uintptr_t>(machine.regs[30])};
#else
    (void)machine;
    return {};
#endif
}

}  // namespace

void capture_interrupted(raw_stack& stack, const void* context) noexcept {
    const auto at = registers_of(context);
    protocol::module here;
    if (!at.known || protocol::find_module(at.instruction, here)) {
        capture(stack, reinterpret_cast<const void*>(at.instruction));
        return;
    }
    // A jump to an address outside of all modules: the unwinder cannot begin there, but the return
    // address shows the caller.
    stack.clear();
    stack.add(at.instruction);
#if defined(__x86_64__)
    const auto caller = *reinterpret_cast<const std::uintptr_t*>(at.link);
#else
    const auto caller = at.link;
#endif
    if (protocol::find_module(caller, here))
        stack.add(caller - 1);
}

void capture_interrupted(raw_stack& into, const void* context, const void* own) noexcept {
    const auto at = registers_of(context);
    if (at.known && base::share_mapping(reinterpret_cast<std::uintptr_t>(own), at.stack))
        return capture_interrupted(into, context);
    into.clear();
    if (at.known)
        into.add(at.instruction);
}

}  // namespace cohort::protocol
