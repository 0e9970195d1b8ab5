/* BCC includes this first, for the kernel's configuration. We need none of it but that bpf() exists. */
#ifndef BQLTOP_KCONFIG_H
#define BQLTOP_KCONFIG_H
#define CONFIG_BPF_SYSCALL 1
#include <linux/types.h>
#endif
