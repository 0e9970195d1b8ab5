/* The programs that run for every packet and every poll. They only add up; nothing leaves the kernel. */

/* Which queue the transmit that is under way on this CPU goes to: after the driver has run, the skb may be freed. */
struct carried { u64 skb; u32 queue; };
BPF_PERCPU_ARRAY(carry, struct carried, 1);

#if CARRY
/* raw tracepoint net_dev_start_xmit(skb, dev) */
int on_start_xmit(struct bpf_raw_tracepoint_args *ctx)
{
	u32 zero = 0;
	struct carried *carried;
	u16 queue = 0;

	if (ctx->args[1] != DEV)
		return 0;
	carried = carry.lookup(&zero);
	if (!carried)
		return 0;
	load(queue, sk_buff, ctx->args[0], OFF_sk_buff_queue_mapping);
	carried->skb = ctx->args[0];
	carried->queue = queue;
	return 0;
}
#endif

#if BQL
#define LARGEST_COMPLETION (1 << 28)	/* more than any ring holds: such a step forward is dql_reset(), which sets the counter to 0 */

/* What was completed since the last look, as one completion. Looks come from two CPUs: the exchange gives each stretch
 * to one of them, and a look that was overtaken is dropped. A counter that is behind is looked at again: then it is level with
 * the other CPU's look, unless it was reset. */
static __always_inline void count_completion(struct queue_cell *cell, u64 txq, u32 completed)
{
	u64 seen = cell->completed_seen, now, before;
	s32 step = completed - (u32)seen;

	if (seen && step < 0) {
		load(completed, netdev_queue, txq, OFF_netdev_queue_dql + OFF_dql_num_completed);
		step = completed - (u32)seen;
		if (step >= 0)
			return;
	}
	if (seen && !step)
		return;
	seen = __sync_lock_test_and_set(&cell->completed_seen, completed | (1ULL << 32));
	now = bpf_ktime_get_ns();
	before = __sync_lock_test_and_set(&cell->completed_at, now);
	step = completed - (u32)seen;
	if (!seen || step <= 0 || step > LARGEST_COMPLETION || now < before)
		return;
	count(cell->completion_size, step);
	count(cell->completion_interval, now - before);
}

/* inflight after this transmit. The two counters lie on two cache lines: a read can be torn, which shows as a
 * completion ahead of its packet; that is 0, and counted. */
static __always_inline void count_inflight(struct queue_cell *cell, u32 queued, u32 completed)
{
	s32 inflight = queued - completed;

	if (inflight < 0) {
		add(cell->torn, 1);
		inflight = 0;
	}
	count(cell->inflight, inflight);
}

static __always_inline void look_at_bql(struct queue_cell *cell, u32 queue, bool transmitted)
{
	u64 txq = TXQ + (u64)queue * SIZE_netdev_queue;
	u32 queued = 0, completed = 0;

	load(completed, netdev_queue, txq, OFF_netdev_queue_dql + OFF_dql_num_completed);
	if (transmitted) {
		load(queued, netdev_queue, txq, OFF_netdev_queue_dql + OFF_dql_num_queued);
		count_inflight(cell, queued, completed);
	}
#ifndef EVERY_COMPLETION	/* then programs/complete.c counts them */
	count_completion(cell, txq, completed);
#endif
}
#endif

/* raw tracepoint net_dev_xmit(skb, rc, dev, len): right after the driver's transmit function, so the state word shows a
 * stop that this packet has just caused. */
int on_xmit(struct bpf_raw_tracepoint_args *ctx)
{
	struct queue_cell *cell;
	u32 queue = 0;
	int rc;

	if (ctx->args[2] != DEV)
		return 0;
#if CARRY
	u32 zero = 0;
	struct carried *carried = carry.lookup(&zero);

	if (!carried)
		return 0;
	queue = carried->skb == ctx->args[0] ? carried->queue : QUEUES;
#endif
	cell = cells.lookup(&queue);
	if (!cell) {
		u32 first = 0;
		struct device_snapshot *dev = device.lookup(&first);

		if (dev)
			add(dev->strays, 1);
		return 0;
	}
	rc = ctx->args[1];
#if SOJOURN
	sojourn_xmit(ctx->args[0], queue, rc);
#endif
	if (rc == NETDEV_TX_OK)
		add(cell->packets, 1);
	else if (rc == NETDEV_TX_BUSY)
		add(cell->busy, 1);
#if BQL
	look_at_bql(cell, queue, true);
#endif
	observe(cell, state_of(queue), true);
	return 0;
}

/* One NAPI instance. Only one CPU at a time polls an instance, so its cells need no atomic addition. */
struct napi_cell {
	u64 address;
	u64 dev;
	u32 id;
	s32 queue;		/* the TX queue whose packets it completes; -1: not known */
	u64 polls;
	u64 work;
	u64 full;
	u64 histogram[LINEAR_WORK_CELLS];
};
BPF_F_TABLE("array", u32, struct napi_cell, napis, NAPIS, 1024 /* BPF_F_MMAPABLE */);
BPF_HASH(napi_slots, u64, u32, NAPIS);
BPF_ARRAY(napi_count, u64, 1);

/* The cell of an instance that is polled for the first time. */
static __always_inline void introduce(struct napi_cell *cell, u64 napi, u64 dev, s32 queue)
{
	cell->dev = dev;
	cell->queue = queue;
	read_to(cell->id, napi + OFF_napi_struct_napi_id);
	cell->address = napi;
}

/* Instances whose place we cannot compute get the next free cell. Only instances of this device come here. */
static __always_inline struct napi_cell *numbered_cell(u64 napi, u64 dev)
{
	u32 *known = napi_slots.lookup(&napi), slot = 0, zero = 0;
	struct napi_cell *cell;
	u64 *next;

	if (known) {
		slot = *known;
		return napis.lookup(&slot);
	}
	next = napi_count.lookup(&zero);
	if (!next)
		return NULL;
	slot = PEER_NAPIS + __sync_fetch_and_add(next, 1);
	cell = napis.lookup(&slot);
	if (!cell)
		return NULL;
	introduce(cell, napi, dev, QUEUES == 1 && RING != RING_VETH ? 0 : -1);
	napi_slots.update(&napi, &slot);
	return cell;
}

/* The cell of a NAPI instance, or NULL when it is not of our device. On a veth, instance i of the peer empties the ring
 * of TX queue i, and its address says which one it is: no look-up on the busiest path. */
static __always_inline struct napi_cell *napi_cell(u64 napi)
{
	u64 dev = 0;

#if RING == RING_VETH
	u64 distance = napi - RING_BASE - OFF_veth_rq_xdp_napi;

	if (distance < (u64)RING_COUNT * SIZE_veth_rq) {
		u32 slot = distance / SIZE_veth_rq;
		struct napi_cell *cell = napis.lookup(&slot);

		if (cell && !cell->address)
			introduce(cell, napi, PEER, slot);
		return cell;
	}
#endif
	load(dev, napi_struct, napi, OFF_napi_struct_dev);
	return dev == DEV ? numbered_cell(napi, dev) : NULL;
}

/* raw tracepoint napi_poll(napi, work, budget) */
int on_poll(struct bpf_raw_tracepoint_args *ctx)
{
	int work = ctx->args[1], budget = ctx->args[2];
	struct queue_cell *cell;
	struct napi_cell *napi = napi_cell(ctx->args[0]);
	u32 queue;
	u64 bin;

	if (!napi || work < 0)
		return 0;
	napi->polls++;
	napi->work += work;
	if (work >= budget)
		napi->full++;
	bin = work;
	asm volatile("" : "+r"(bin));
	if (bin > LINEAR_WORK_CELLS - 1)
		bin = LINEAR_WORK_CELLS - 1;
	napi->histogram[bin]++;

	queue = napi->queue;
	cell = cells.lookup(&queue);
	if (!cell)
		return 0;
#if BQL
	look_at_bql(cell, queue, false);
#endif
	/* A stop begins in a transmit, or is found by the snapshot: a poll can only see one end. */
	if (cell->any.since)
		observe(cell, state_of(queue), false);
	return 0;
}
