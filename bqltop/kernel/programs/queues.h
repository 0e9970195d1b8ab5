/* The cells of a TX queue, and the one rule by which time stopped is added up. */

#define RING_NONE 0
#define RING_VETH 1
#define RING_TUN 2
#define RING_USBNET 3

#define NETDEV_TX_OK 0
#define NETDEV_TX_BUSY 0x10

struct stop {
	u64 since;	/* CLOCK_MONOTONIC ns up to which the present stop has been added up; 0: not stopped */
	u64 total_ns;
	u64 begun;
};

struct queue_cell {
	struct stop driver, bql, any;
	u64 packets;
	u64 busy;
	u64 wakes_driver;
	u64 wakes_bql;
	u64 torn;
	u64 completed_seen;	/* num_completed at the last look, with bit 32 set: so 0 means "not looked yet" */
	u64 completed_at;
	u64 inflight[LOG_LINEAR_CELLS];
	u64 completion_size[LOG_LINEAR_CELLS];
	u64 completion_interval[LOG_LINEAR_CELLS];
};

BPF_F_TABLE("array", u32, struct queue_cell, cells, QUEUES, 1024 /* BPF_F_MMAPABLE */);

/* DRV_XOFF, STACK_XOFF, FROZEN: masks of netdev_queue.state. */
#define ANY_XOFF (DRV_XOFF | STACK_XOFF | FROZEN)

/* Bring one stop up to date. Two CPUs may look at the same queue at once (a transmit here, a poll there): the exchange
 * hands every stretch of time to exactly one of them. `fresh` says that the queue was surely running before this look,
 * so what is stopped now is a new stop, even when the end of the one before went unseen. */
static __always_inline void account(struct stop *stop, bool stopped, bool fresh, u64 now)
{
	u64 since;

	if (!stopped && !stop->since)
		return;
	since = __sync_lock_test_and_set(&stop->since, stopped ? now : 0);
	if (since && now > since)
		add(stop->total_ns, now - since);
	else if (since && stopped)
		stop->since = since;	/* another CPU has looked a moment later, and was first */
	if (stopped && (fresh || !since))
		add(stop->begun, 1);
}

/* Look at a queue's state word and bring its three stops up to date. */
static __always_inline void observe(struct queue_cell *cell, u64 state, bool transmitted)
{
	u64 now;

	if (!(state & ANY_XOFF) && !cell->any.since)
		return;
	now = bpf_ktime_get_ns();
	/* dev_hard_start_xmit() never runs with DRV_XOFF set; with STACK_XOFF it may, inside a list of packets. */
	account(&cell->driver, state & DRV_XOFF, transmitted, now);
	account(&cell->bql, state & STACK_XOFF, false, now);
	account(&cell->any, state & ANY_XOFF, false, now);
}

static __always_inline u64 state_of(u32 queue)
{
	u64 state = 0;

	load(state, netdev_queue, TXQ + (u64)queue * SIZE_netdev_queue, OFF_netdev_queue_state);
	return state;
}
