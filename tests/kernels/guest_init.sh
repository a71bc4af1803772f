#!/bin/busybox sh
# SPDX-License-Identifier: BSL-1.0
# Pid 1 of the guest's initramfs: makes the machine's file system the root, under an overlay that
# takes all writes, and runs the tests in it.
/bin/busybox mkdir -p /proc /sys /dev /lower /upper /root
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t devtmpfs dev /dev
while read -r module; do
    insmod "/modules/$module" || echo "kernels: no module $module"
done </modules/order
mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=loose,ro host /lower
mount -t tmpfs -o size=2g upper /upper
mkdir /upper/files /upper/work
mount -t overlay -o lowerdir=/lower,upperdir=/upper/files,workdir=/upper/work root /root
mount -t proc proc /root/proc
mount -t sysfs sys /root/sys
mount -t devtmpfs dev /root/dev
mkdir -p /root/dev/shm /root/dev/pts
mount -t tmpfs -o mode=1777 shm /root/dev/shm
mount -t devpts pts /root/dev/pts
mount -t tmpfs -o mode=1777 tmp /root/tmp
for link in stdin:0 stdout:1 stderr:2; do ln -sf "/proc/self/fd/${link#*:}" "/root/dev/${link%:*}"; done
ln -sfn /proc/self/fd /root/dev/fd
mount -t cgroup2 cgroup /root/sys/fs/cgroup
echo '+memory +pids' >/root/sys/fs/cgroup/cgroup.subtree_control
ip link set lo up
cp /guest_tests.sh /selection /root/tmp/
# At "/", not at "/root": the path of a program that is executed in another mount namespace begins there.
cd /root
mount -o move . /
chroot . /bin/bash /tmp/guest_tests.sh &
wait $!  # the shell reaps all orphans while it waits
sync
poweroff -f
