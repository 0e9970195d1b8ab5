/* BCC's helpers ask which kernel this is. Every kernel we support has what they ask about; what differs between
 * kernels is looked up in BTF at run time, never decided by a version. */
#define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + (c))
#define LINUX_VERSION_CODE KERNEL_VERSION(6, 1, 0)
