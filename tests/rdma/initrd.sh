#!/bin/busybox sh
# The first process of a guest. Its root is this machine's root, read-only, below a file system in memory: what is installed and built here
# is there. Words of the kernel's command line: keep=PATH is shown although it lies below a folder that the guest has of its own.
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
$b mount -t devtmpfs dev /dev
for module in $($b cat /modules/order); do $b insmod "/modules/$module"; done
$b mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=loose,ro host /lower
$b mount -t tmpfs upper /upper
$b mkdir /upper/files /upper/work
$b mount -t overlay -o lowerdir=/lower,upperdir=/upper/files,workdir=/upper/work root /root
for folder in tmp run var/tmp; do $b mount -t tmpfs own "/root/$folder"; done
keep=$($b sed -n 's/.*keep=\([^ ]*\).*/\1/p' /proc/cmdline)
$b mkdir -p "/root$keep"
$b mount --bind "/lower$keep" "/root$keep"
for system in proc sys dev; do $b mount --move "/$system" "/root/$system"; done
$b mkdir -p /root/dev/shm
$b mount -t tmpfs shm /root/dev/shm
$b mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=none share /root/mnt
exec $b chroot /root /bin/bash /mnt/guest.sh
