/* Exact wake-ups, where the kernel has fentry or kprobes: the functions that a driver calls when its ring has room again,
 * and that BQL calls when completions have made room. Appended to the other programs only where it can be attached. */

static __always_inline int woken(u64 txq, bool by_driver)
{
	u64 distance = txq - TXQ, state;
	u32 queue = distance / SIZE_netdev_queue;
	struct queue_cell *cell;

	if (distance >= (u64)QUEUES * SIZE_netdev_queue)
		return 0;
	cell = cells.lookup(&queue);
	if (!cell)
		return 0;
	state = state_of(queue);
	if (by_driver) {
		state &= ~(u64)DRV_XOFF;	/* set on entry, cleared by the function */
		if (cell->driver.since)
			add(cell->wakes_driver, 1);
	} else if (cell->bql.since && !(state & STACK_XOFF)) {
		add(cell->wakes_bql, 1);
#if BQL
		look_at_bql(cell, queue, false);
#endif
	}
	observe(cell, state, false);
	return 0;
}

static __always_inline u64 argument(void *address)
{
	u64 value = 0;

	read_to(value, address);
	return value;
}

/* fentry: the context is the array of arguments. They are read as memory: the verifier would take the queue for a typed
 * pointer and refuse to compute with it. */
int enter_tx_wake(void *ctx) { return woken(argument(ctx), true); }
int enter_schedule(void *ctx) { return woken(argument(ctx), false); }

/* kprobe: the context is the registers. */
int probe_tx_wake(void *ctx) { return woken(argument(ctx + OFF_first_argument), true); }
int probe_schedule(void *ctx) { return woken(argument(ctx + OFF_first_argument), false); }
