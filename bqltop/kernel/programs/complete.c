/* Every completion by itself: run by a hardware breakpoint on the entry of dql_completed(dql, count), which no other probe can
 * reach where lib/ is built without ftrace. Part of the text only when it was asked for. */

/* The registers at the breakpoint. Read in one instruction each: the verifier turns these, and nothing else, into reads of
 * what lies behind the context of a perf event. */
#define register_at(value, ctx, offset) \
	asm volatile("%0 = *(u64 *)(%1 + %2)" : "=r"(value) : "r"(ctx), "i"(offset))

int on_completed(void *ctx)
{
	u64 dql, size, distance, now, before;
	struct queue_cell *cell;
	u32 queue;

	register_at(dql, ctx, OFF_first_argument);
	register_at(size, ctx, OFF_second_argument);
	size = (u32)size;
	distance = dql - OFF_netdev_queue_dql - TXQ;
	if (distance >= (u64)QUEUES * SIZE_netdev_queue || !size)
		return 0;
	queue = distance / SIZE_netdev_queue;
	cell = cells.lookup(&queue);
	if (!cell)
		return 0;
	now = bpf_ktime_get_ns();
	before = __sync_lock_test_and_set(&cell->completed_at, now);
	count(cell->completion_size, size);
	if (before && now >= before)
		count(cell->completion_interval, now - before);
	return 0;
}
