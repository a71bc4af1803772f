// SPDX-License-Identifier: BSL-1.0
// Runs a program where the kernel denies chosen system calls, as containers and old kernels do:
//     deny --errno=EPERM --io_uring --close_range --errno=ENOSYS --clone3 -- program arguments...
// An --errno holds for the calls named after it.

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

#if defined(__x86_64__)
constexpr unsigned architecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr unsigned architecture = AUDIT_ARCH_AARCH64;
#elif defined(__riscv) && __riscv_xlen == 64
constexpr unsigned architecture = AUDIT_ARCH_RISCV64;
#else
#error "add the audit number of this architecture"
#endif

using instructions = std::vector<sock_filter>;

void deny_call(instructions& filter, long number, int error) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)));
}

instructions filter_head() {
    return {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, architecture, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
    };
}

/// False: not a flag of this program.
bool take_flag(std::string_view flag, int& error, instructions& filter) {
    if (flag == "--errno=EPERM") {
        error = EPERM;
    } else if (flag == "--errno=ENOSYS") {
        error = ENOSYS;
    } else if (flag == "--io_uring") {
        deny_call(filter, SYS_io_uring_setup, error);
        deny_call(filter, SYS_io_uring_enter, error);
        deny_call(filter, SYS_io_uring_register, error);
    } else if (flag == "--clone3") {
        deny_call(filter, SYS_clone3, error);
    } else if (flag == "--close_range") {
        deny_call(filter, SYS_close_range, error);
    } else {
        return false;
    }
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    int error = EPERM;
    instructions filter = filter_head();
    int at = 1;
    while (at < argc && take_flag(argv[at], error, filter))
        ++at;
    if (at + 1 >= argc || std::strcmp(argv[at], "--") != 0) {
        std::fprintf(stderr,
                     "usage: %s [--errno=EPERM|ENOSYS] [--io_uring] [--clone3] "
                     "[--close_range] ... -- program [argument...]\n",
                     argv[0]);
        return 2;
    }
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));

    sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        std::perror("deny: seccomp");
        return 77;  // Meson: skipped
    }
    execvp(argv[at + 1], argv + at + 1);
    std::perror(argv[at + 1]);
    return 2;
}
