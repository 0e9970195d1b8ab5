/* snapshot: the bytes of up to CHUNK TX queues and the occupancy of their rings, in one system call. Attached to nothing,
 * run by BPF_PROG_RUN; works on an idle device, where no event ever fires. */

/* The verifier walks every round of the loop: 64 of them took 60 ms at start. */
#define CHUNK (QUEUES < 16 ? QUEUES : 16)

struct queue_snapshot {
	u8 txq[SIZE_netdev_queue];
	u64 read_at;
	u32 ring_size;
	u32 ring_used;
	u32 ring_known;
	u32 fault;
};
BPF_F_TABLE("array", u32, struct queue_snapshot, snapshots, QUEUES, 1024 /* BPF_F_MMAPABLE */);

struct device_snapshot {
	u64 found;		/* address of the net_device that has this index in this namespace now; 0: none */
	u32 real_queues;
	u32 reg_state;
	u64 ticks;
	u64 strays;		/* transmits whose queue was not known or beyond QUEUES */
};
BPF_F_TABLE("array", u32, struct device_snapshot, device, 1, 1024 /* BPF_F_MMAPABLE */);

/* Entries between consumer and producer of a ptr_ring. Equal indices mean empty or full: the producer's slot tells. */
static __always_inline void read_ptr_ring(struct queue_snapshot *snap, u64 ring)
{
	u32 producer = 0, consumer = 0, size = 0;
	u64 queue = 0, entry = 0;

	read_to(size, ring + OFF_ptr_ring_size);
	read_to(consumer, ring + OFF_ptr_ring_consumer_head);
	read_to(producer, ring + OFF_ptr_ring_producer);
	read_to(queue, ring + OFF_ptr_ring_queue);
	if (!size || !queue || producer >= size)
		return;
	read_to(entry, queue + (u64)producer * 8);
	snap->ring_size = size;
	snap->ring_used = entry && producer == consumer ? size
			: producer >= consumer ? producer - consumer : producer + size - consumer;
	snap->ring_known = 1;
}

static __always_inline void read_ring(struct queue_snapshot *snap, u32 queue)
{
	snap->ring_known = 0;
#if RING == RING_VETH
	u64 rq = RING_BASE + (u64)queue * SIZE_veth_rq, napi = 0;

	/* Without NAPI mode the ring is torn down, but its indices and pointer stay behind. */
	if (queue < RING_COUNT)
		read_to(napi, rq + OFF_veth_rq_napi);
	if (napi)
		read_ptr_ring(snap, rq + OFF_veth_rq_xdp_ring);
#elif RING == RING_TUN
	u64 file = 0;
	u32 attached = 0;

	/* Slots beyond numqueues keep pointers to files that have gone. */
	read_to(attached, RING_BASE + OFF_tun_struct_numqueues);
	if (queue < attached)
		read_to(file, RING_BASE + OFF_tun_struct_tfiles + (u64)queue * 8);
	if (file)
		read_ptr_ring(snap, file + OFF_tun_file_tx_ring);
#elif RING == RING_USBNET
	u16 size = 0;	/* not 32 bits: can_dma_sg and others follow it */

	read_to(snap->ring_used, RING_BASE + OFF_usbnet_txq_qlen);
	read_to(size, RING_BASE + OFF_usbnet_tx_qlen);
	snap->ring_size = size;
	snap->ring_known = 1;
#endif
}

/* The net_device that has our index in our namespace now: the device may be gone, or another one of the same name. */
static __always_inline u64 find_device(void)
{
	u64 heads = 0, node = 0;
	u32 index = 0;

	read_to(heads, NET + OFF_net_dev_index_head);
	read_to(node, heads + (IFINDEX & 255) * 8);
	for (int i = 0; i < 32 && node; i++) {
		read_to(index, node - OFF_net_device_index_hlist + OFF_net_device_ifindex);
		if (index == IFINDEX)
			return node - OFF_net_device_index_hlist;
		read_to(node, node);
	}
	return 0;
}

/* args: first queue. Returns -1 when the device is not the one this program was made for: nothing of it is read then. */
int snapshot(struct bpf_raw_tracepoint_args *ctx)
{
	u32 zero = 0, first = ctx->args[0];
	struct device_snapshot *dev = device.lookup(&zero);

	if (!dev)
		return -1;
	dev->found = find_device();
	if (dev->found != DEV)
		return -1;
	read_to(dev->real_queues, DEV + OFF_net_device_real_num_tx_queues);
	for (u32 i = 0; i < CHUNK; i++) {
		u32 queue = first + i;
		struct queue_snapshot *snap = snapshots.lookup(&queue);
		struct queue_cell *cell = cells.lookup(&queue);

		if (!snap || !cell)
			break;
		snap->fault = bpf_probe_read_kernel(snap->txq, SIZE_netdev_queue,
						    (void *)(TXQ + (u64)queue * SIZE_netdev_queue)) != 0;
		read_ring(snap, queue);
#if SOJOURN
		note_empty(queue, *(u64 *)(snap->txq + OFF_netdev_queue_qdisc), snap->ring_known, !snap->ring_used);
#endif
		observe(cell, *(u64 *)(snap->txq + OFF_netdev_queue_state), false);
		snap->read_at = bpf_ktime_get_ns();
	}
	return 0;
}
