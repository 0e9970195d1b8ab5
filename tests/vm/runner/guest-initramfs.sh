#!/bin/sh
# First stage in the guest (busybox): the host's root over virtiofs, read-only, under a throw-away overlay.
busybox=/bin/busybox

give_up() {
	echo "vm guest: $*" >/dev/console
	$busybox poweroff -f
}

$busybox mount -t proc proc /proc
$busybox mount -t devtmpfs devtmpfs /dev
for module in /modules/*.ko; do
	[ -e "$module" ] || continue
	$busybox insmod "$module" || give_up "insmod $module failed"
done
for word in $($busybox cat /proc/cmdline); do
	case $word in
	vm_work=*) work=${word#*=} ;;
	vm_init=*) init=${word#*=} ;;
	esac
done

$busybox mount -t virtiofs -o ro hostroot /host || give_up "no virtiofs"
$busybox mount -t tmpfs -o mode=755,size=75% tmpfs /upper || give_up "no tmpfs"
$busybox mkdir /upper/changes /upper/work
# xino=off: the shared file system's inode numbers use all 64 bits
$busybox mount -t overlay overlay -o lowerdir=/host,upperdir=/upper/changes,workdir=/upper/work,xino=off /root ||
	give_up "no overlay"
$busybox umount /dev
$busybox umount /proc
exec $busybox switch_root /root /bin/bash "$init" "$work"
