#!/bin/sh
# What the kernel starts. systemd keeps the hierarchy that it finds mounted: with this file it finds cgroup v1.
if [ -e /etc/rig-cgroup-v1 ]; then
  mount -t sysfs -o nosuid,nodev,noexec sysfs /sys
  mount -t tmpfs -o nosuid,nodev,noexec,mode=755 tmpfs /sys/fs/cgroup
  mkdir /sys/fs/cgroup/systemd
  mount -t cgroup -o nosuid,nodev,noexec,none,name=systemd,xattr cgroup /sys/fs/cgroup/systemd
fi
exec /lib/systemd/systemd "$@"
