/* What every program of bqltop shares. Offsets (OFF_struct_member, SIZE_struct) and bit numbers come from the kernel's
 * BTF as -D flags; the constants of the watched device (DEV, TXQ, QUEUES, ...) likewise: see ../engine.py. */

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#define read_to(destination, address) \
	bpf_probe_read_kernel(&(destination), sizeof(destination), (void *)(u64)(address))

/* load(destination, structure, address, offset): one member of a kernel structure, of the destination's size. Where the
 * kernel has bpf_rdonly_cast it is a single instruction (see ../direct.py), else a helper's call; memory that is not
 * there reads as 0 either way. */
#ifdef RDONLY_CAST
static void *(*rdonly_cast)(u64 address, u32 type) = (void *)RDONLY_CAST;
#define load_as(width, result, from, offset) \
	asm volatile("%0 = *(" width " *)(%1 + %2)" : "=r"(result) : "r"(from), "i"(offset))
#define load(destination, structure, address, offset) do { \
	void *from__ = rdonly_cast(address, TYPE_##structure); \
	u64 result__; \
	if (sizeof(destination) == 8) \
		load_as("u64", result__, from__, offset); \
	else if (sizeof(destination) == 4) \
		load_as("u32", result__, from__, offset); \
	else \
		load_as("u16", result__, from__, offset); \
	(destination) = result__; \
} while (0)
#else
#define load(destination, structure, address, offset) read_to(destination, (address) + (offset))
#endif
#define add(cell, amount) __sync_fetch_and_add(&(cell), (u64)(amount))

#define LOG_LINEAR_CELLS 160
#define LINEAR_WORK_CELLS 65

/* floor(log2(value)) of a value > 0, without a loop: the verifier has to walk every path. */
static __always_inline u32 octave_of(u64 value)
{
	u32 octave = 0;

	if (value >> 32) { octave += 32; value >>= 32; }
	if (value >> 16) { octave += 16; value >>= 16; }
	if (value >> 8) { octave += 8; value >>= 8; }
	if (value >> 4) { octave += 4; value >>= 4; }
	if (value >> 2) { octave += 2; value >>= 2; }
	return octave + (value >> 1);
}

/* The LOG_LINEAR cell of a value: the same arithmetic as bqltop.histogram.log_linear_cell. */
static __always_inline u32 log_linear_cell(u64 value)
{
	u32 octave, cell;

	if (value < 4)
		return value;
	octave = octave_of(value);
	cell = (octave - 1) * 4 + ((value >> (octave - 2)) & 3);
	return cell < LOG_LINEAR_CELLS ? cell : LOG_LINEAR_CELLS - 1;
}

/* Count a value in a histogram. clang believes the cell to be in range and drops a plain check; the verifier wants to
 * see one, so the value goes through an opaque register first. */
static __always_inline void count(u64 *histogram, u64 value)
{
	u64 cell = log_linear_cell(value);

	asm volatile("" : "+r"(cell));
	if (cell < LOG_LINEAR_CELLS)
		add(histogram[cell], 1);
}
