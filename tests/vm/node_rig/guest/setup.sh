#!/bin/bash
# What a node's installer and its device manager do elsewhere, at each boot: modules, address, the disk of containerd.
set -e
modprobe -a virtio_net overlay br_netfilter ip_tables
ip link set lo up
ip address add "$1" dev eth0
ip link set eth0 up
ip route add default via "$2" dev eth0
echo 1 >/proc/sys/net/ipv4/ip_forward
mkdir -p /var/lib/containerd
mount -t ext4 -o noatime /dev/nvme1n1 /var/lib/containerd
