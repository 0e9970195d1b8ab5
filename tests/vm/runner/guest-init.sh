#!/bin/bash
# Second stage in the guest, pid 1 on the overlay: mounts, then the job, then power off.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
work=$1

power_off() {
	echo o >/proc/sysrq-trigger
	sleep 10
}
give_up() {
	echo "vm guest: $*" >/dev/console
	power_off
}
port() { # the device node of the virtio port called $1
	local folder
	for folder in /sys/class/virtio-ports/*; do
		[ "$(<"$folder/name")" = "$1" ] && echo "/dev/${folder##*/}"
	done
}

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs -o mode=755 tmpfs /run
mount -t tmpfs -o mode=1777 tmpfs /var/tmp
mkdir -p /dev/pts /dev/shm /run/netns /run/lock
mount -t devpts -o mode=620,ptmxmode=666 devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
ln -sf /proc/self/fd /dev/fd
ln -sf fd/0 /dev/stdin
ln -sf fd/1 /dev/stdout
ln -sf fd/2 /dev/stderr
# There is no udev: opening these nodes loads their module.
mkdir -p /dev/net
[ -e /dev/net/tun ] || mknod -m 666 /dev/net/tun c 10 200
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t bpf bpf /sys/fs/bpf
mount -t debugfs debugfs /sys/kernel/debug
mount -t tracefs tracefs /sys/kernel/tracing

# shellcheck disable=SC1091
. "$work/settings" || give_up "no settings in $work"
if [ -n "$VM_MODULES" ]; then
	mkdir -p /lib/modules
	mount --bind "$VM_MODULES" /lib/modules || give_up "no modules"
fi
output=$(port output) report=$(port report)
[ -c "$output" ] && [ -c "$report" ] || give_up "no virtio ports"
export BQLTOP_VM_REPORT=$report

hostname bqltop-vm
ip link set lo up
ulimit -l unlimited
ulimit -n 65536
ulimit -c 0
cd "$VM_FOLDER" || give_up "no folder $VM_FOLDER"
echo "{\"event\": \"boot\", \"release\": \"$(uname -r)\"}" >"$report"
setsid bash "$work/job" </dev/null >"$output" 2>&1
status=$?
echo "{\"event\": \"exit\", \"status\": $status}" >"$report"
power_off
