/* sojourn: how long sampled packets wait in the qdisc and in the ring. A packet is sampled by a hash of its address, so
 * that the three places it passes (qdisc_enqueue, net_dev_xmit, its arrival) agree without talking to each other; for the
 * others each place costs a multiplication and a comparison.
 *
 * An address comes back: the packet may have been dropped on the way and the next one lie where it lay. What is noted of
 * an earlier packet is therefore overwritten by the next one at its first place, and a note is not believed when it is
 * older than the limit, or older than a moment at which the queue it should be in was empty. Such packets are counted
 * as lost; no time is made up for them. */

#define ARRIVAL_NONE 0		/* nobody tells us: only the qdisc part is timed */
#define ARRIVAL_PEER 1		/* veth: the peer's NAPI hands the packet to GRO */
#define ARRIVAL_FREED 2		/* drivers that keep the packet until it is sent or read, and free it then */

/* Whether a packet may be timed from net_dev_xmit on, without having waited in the qdisc. Not where a driver may copy and
 * free it inside its transmit function: its address could then be taken for that of a later packet. */
#define DIRECT (ARRIVAL == ARRIVAL_PEER || RING == RING_TUN)

#define FLIGHTS 4096
#define AGE_LIMIT_NS 30000000000ULL
#define EMPTY_MARGIN_NS 10000000ULL	/* taken from the queue, but not yet at the next place */
#define RACE_NS 100000ULL		/* by how much a packet may arrive before net_dev_xmit tells of it */
#define TCQ_F_CPUSTATS 0x20		/* its length is the sum of per-CPU numbers: q.qlen says nothing */

struct sojourn_control {
	u64 start_mask;		/* a packet is sampled when its hash has none of these bits */
	u64 match_mask;		/* the widest start_mask of late: packets under way keep their notes */
	u64 sure_mask;		/* the narrowest one: what has none of these bits was sampled whenever it began */
	s64 credit;		/* packets that may still be sampled until user space pays again */
};
BPF_F_TABLE("array", u32, struct sojourn_control, sojourn_control, 1, 1024 /* BPF_F_MMAPABLE */);

struct sojourn_cell {
	u64 sampled;		/* = ended + lost + under way */
	u64 ended;
	u64 lost;
	u64 qdisc_empty_at;
	u64 ring_empty_at;
	u64 no_ring;		/* the device has rings, but does not use them now (veth without NAPI mode) */
	u64 qdisc[LOG_LINEAR_CELLS];
	u64 ring[LOG_LINEAR_CELLS];
};
BPF_F_TABLE("array", u32, struct sojourn_cell, sojourns, QUEUES, 1024 /* BPF_F_MMAPABLE */);

/* A packet under way. `stamp` is written by transmit and arrival, who may run at the same time on two CPUs: an exchange
 * tells each whether it is the second. Its lowest bit says who wrote it: 0 transmit, 1 arrival. */
struct flight {
	u64 enqueued;		/* 0: not waiting in the qdisc */
	u64 stamp;
	u64 queue;
};
BPF_HASH(flights, u64, struct flight, FLIGHTS);

static __always_inline u64 address_hash(u64 skb)
{
	return ((skb >> 6) * 0x9E3779B97F4A7C15ULL) >> 40;
}

static __always_inline bool plausible(u64 from, u64 to, u64 empty_at)
{
	return to >= from && to - from < AGE_LIMIT_NS && from + EMPTY_MARGIN_NS > empty_at;
}

/* Whether a packet that is about to be sampled may be: user space pays for a number of them. */
static __always_inline bool paid(struct sojourn_control *control)
{
	if (control->credit <= 0)
		return false;
	add(control->credit, -1);
	return true;
}

static __always_inline void begin(u64 skb, struct sojourn_cell *cell, struct flight *flight)
{
	add(cell->sampled, 1);
	if (flights.update(&skb, flight))
		add(cell->lost, 1);
}

/* raw tracepoint qdisc_enqueue(qdisc, txq, skb): the qdisc has taken the packet. */
int on_enqueue(struct bpf_raw_tracepoint_args *ctx)
{
	u64 distance = ctx->args[1] - TXQ, skb = ctx->args[2];
	u32 zero = 0, queue;
	struct sojourn_control *control;
	struct sojourn_cell *cell;
	struct flight *before;

	if (distance >= (u64)QUEUES * SIZE_netdev_queue)
		return 0;
	control = sojourn_control.lookup(&zero);
	if (!control || address_hash(skb) & control->start_mask || !paid(control))
		return 0;
	queue = distance / SIZE_netdev_queue;
	cell = sojourns.lookup(&queue);
	if (!cell)
		return 0;
	before = flights.lookup(&skb);
	if (before && (before->enqueued || !(before->stamp & 1)))
		add(cell->lost, 1);
	struct flight flight = { .enqueued = bpf_ktime_get_ns(), .queue = queue };
	begin(skb, cell, &flight);
	return 0;
}

/* A sampled packet that did not come through the qdisc: it was empty and passed over, or there is none. */
static __always_inline void sent_directly(u64 skb, u32 queue, struct sojourn_control *control, struct sojourn_cell *cell)
{
	struct flight flight = { .stamp = bpf_ktime_get_ns() & ~1ULL, .queue = queue };

	if (DIRECT && !cell->no_ring && !(address_hash(skb) & control->sure_mask) && paid(control))
		begin(skb, cell, &flight);
}

static __always_inline void end(u64 skb, struct sojourn_cell *cell, bool timed)
{
	flights.delete(&skb);
	if (timed)
		add(cell->ended, 1);
	else
		add(cell->lost, 1);
}

/* The driver has taken a sampled packet. */
static __always_inline void sent(u64 skb, u32 queue, struct flight *flight, struct sojourn_control *control,
				 struct sojourn_cell *cell)
{
	u64 now = bpf_ktime_get_ns(), enqueued = flight->enqueued, before = 0;
	bool known = enqueued && plausible(enqueued, now, cell->qdisc_empty_at);

	if (known)
		count(cell->qdisc, now - enqueued);
	flight->enqueued = 0;
	if (ARRIVAL == ARRIVAL_NONE || cell->no_ring) {
		end(skb, cell, known);
		return;
	}
	before = __sync_lock_test_and_set(&flight->stamp, now & ~1ULL);
	if (known && !before)
		return;
	if (before & 1 && (known || now - before < RACE_NS)) {
		/* It was there before we heard of its start: no wait to speak of. A driver that freed it inside its
		 * transmit function has copied it, and the copy is out of sight. */
		if (DIRECT)
			count(cell->ring, 0);
		if (!known)
			add(cell->sampled, 1);
		if (enqueued && !known)
			add(cell->lost, 1);
		end(skb, cell, DIRECT);
		return;
	}
	/* The note is of an earlier packet; an arrival that nobody waits for is no packet of ours. */
	if (enqueued || !(before & 1))
		add(cell->lost, 1);
	flights.delete(&skb);
	sent_directly(skb, queue, control, cell);
}

/* From on_xmit, for every packet. */
static __always_inline void sojourn_xmit(u64 skb, u32 queue, int rc)
{
	u32 zero = 0;
	struct sojourn_control *control = sojourn_control.lookup(&zero);
	struct sojourn_cell *cell;
	struct flight *flight;

	if (!control || address_hash(skb) & control->match_mask || rc == NETDEV_TX_BUSY)
		return;
	cell = sojourns.lookup(&queue);
	if (!cell)
		return;
	flight = flights.lookup(&skb);
	if (rc != NETDEV_TX_OK) {
		if (flight)
			end(skb, cell, false);
	} else if (flight) {
		sent(skb, queue, flight, control, cell);
	} else {
		sent_directly(skb, queue, control, cell);
	}
}

/* raw tracepoints napi_gro_receive_entry(skb) at the peer, consume_skb(skb, location): the packet has left the ring. They
 * fire for every packet of the machine. */
int on_arrival(struct bpf_raw_tracepoint_args *ctx)
{
	u64 skb = ctx->args[0], dev = 0, now, before;
	u32 zero = 0, queue;
	struct sojourn_control *control = sojourn_control.lookup(&zero);
	struct sojourn_cell *cell;
	struct flight *flight;

	if (!control || address_hash(skb) & control->match_mask)
		return 0;
	flight = flights.lookup(&skb);
	if (!flight && !DIRECT)
		return 0;
	read_to(dev, skb + OFF_sk_buff_dev);
	if (dev != (ARRIVAL == ARRIVAL_PEER ? PEER : DEV))
		return 0;
	now = bpf_ktime_get_ns();
	if (!flight) {
		struct flight early = { .stamp = now | 1 };

		/* Not noted in the qdisc: if it was sent directly, net_dev_xmit will tell in a moment, or just did. */
		if (address_hash(skb) & control->sure_mask || control->credit <= 0 || !flights.insert(&skb, &early))
			return 0;
		flight = flights.lookup(&skb);
		if (!flight)
			return 0;
	}
	queue = flight->queue;
	cell = sojourns.lookup(&queue);
	before = __sync_lock_test_and_set(&flight->stamp, now | 1);
	if (!cell || !before || before & 1)
		return 0;
	bool known = plausible(before, now, cell->ring_empty_at);

	if (known)
		count(cell->ring, now - before);
	end(skb, cell, known);
	return 0;
}

/* From the snapshot: what is empty now holds no packet of before. */
static __always_inline void note_empty(u32 queue, u64 qdisc, bool ring_known, bool ring_empty)
{
	struct sojourn_cell *cell = sojourns.lookup(&queue);
	u32 length = 1, flags = TCQ_F_CPUSTATS;
	u64 now = bpf_ktime_get_ns();

	if (!cell)
		return;
	cell->no_ring = RING != RING_NONE && !ring_known;
	if (ring_known && ring_empty)
		cell->ring_empty_at = now;
	read_to(flags, qdisc + OFF_Qdisc_flags);
	read_to(length, qdisc + OFF_Qdisc_q_qlen);
	if (!(flags & TCQ_F_CPUSTATS) && !length)
		cell->qdisc_empty_at = now;
}
