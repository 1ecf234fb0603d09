#!/bin/bash
# Process 1 of the emulated machine: mounts, one command from outside, its output and exit code back, power off.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/run LANG=C.UTF-8
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
while read -r module; do busybox insmod "/lib/rig/$module.ko"; done </lib/rig/order
mkdir -p /dev/pts /dev/shm /share
mount -t devpts devpts /dev/pts
for folder in /dev/shm /run /tmp; do mount -t tmpfs tmpfs "$folder"; done
busybox ip link set lo up
mount -t cgroup2 cgroup2 /sys/fs/cgroup
echo '+cpuset +cpu +io +memory +pids' >/sys/fs/cgroup/cgroup.subtree_control
mount -t virtiofs share /share

port() {
  local entry
  for entry in /sys/class/virtio-ports/*; do
    [[ $(<"$entry/name") == "$1" ]] && echo "/dev/${entry##*/}"
  done
}

# A port can be opened once only, but whatever writes to /dev/stderr opens it again: so a pipe stands before each.
mkfifo /run/out /run/err
cat /run/out >"$(port out)" & readers=($!)
cat /run/err >"$(port err)" & readers+=($!)
exec 7>"$(port state)"
echo started >&7
cat /sys/firmware/qemu_fw_cfg/by_name/opt/rig/command/raw >/run/command
bash /run/command >/run/out 2>/run/err </dev/null
code=$?
for _ in {1..50}; do # what the command left behind may hold the pipes for ever
  kill -0 "${readers[@]}" 2>/dev/null || break
  sleep 0.1
done
echo "exit $code" >&7
cd / && umount -l /share # lazily: what the command left behind may still stand in it
echo o >/proc/sysrq-trigger
while :; do sleep 60; done
