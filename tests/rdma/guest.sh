#!/usr/bin/env bash
# What a guest does: makes a soft-RoCE device, runs /mnt/command, writes its output and its exit status, and ends.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
hostname guest
ip link set lo up
# The largest message of soft-RoCE is 4096 bytes and its headers.
ip link add v0 type dummy
ip link set v0 mtu 4400 up
ip addr add 10.9.0.1/24 dev v0
ulimit -l unlimited
ulimit -c 0
rdma link add rxe0 type rxe netdev v0
bash /mnt/command >/mnt/output 2>&1 </dev/null
echo $? >/mnt/status
sync
/bin/busybox poweroff -f
