"""What the emulated machine is: sockets, cores, threads, memory nodes, and in which order Linux numbers its CPUs.

QEMU lists the threads of a core side by side. Linux numbers CPUs in the order of the interrupt controllers in the MADT,
and takes a second such table when the command line says so: the machine hands one over with the entries in the order
thread, socket, core, so that core N of a 2 x 12 x 2 machine has the CPUs N and N + 24, as the tutorial's machine has.
"""

import struct
from dataclasses import dataclass
from pathlib import Path

_LOCAL_APIC, _IO_APIC = 0xFEE00000, 0xFEC00000
_INTERRUPTS = ((0, 2, 0), (5, 5, 13), (9, 9, 13), (10, 10, 13), (11, 11, 13))  # source, number, flags: QEMU's own
_REMOTE_DISTANCE = 21

KERNEL_ARGUMENTS = (
    "console=ttyS0 quiet root=/dev/nvme0n1 rw init=/sbin/rig-init cgroup_no_v1=all psi=1 acpi_apic_instance=2 "
    # calibration, mitigations and watchdogs cost an emulated CPU more than all else that it does while idle
    "mitigations=off tsc=reliable lpj=10000000 nowatchdog rcupdate.rcu_cpu_stall_suppress=1 numa_balancing=disable "
    "audit=0 apparmor=0 panic=-1"
)


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine with one memory node for each socket. The default is the tutorial's, with less memory."""

    sockets: int = 2
    cores: int = 12
    threads: int = 2
    node_memory_mib: int = 4096

    @property
    def cpus(self) -> int:
        """Number of CPUs, threads counted."""
        return self.sockets * self.cores * self.threads

    def node_cpus(self, node: int) -> list[int]:
        """The numbers that Linux gives to the CPUs of a memory node, ascending."""
        row = self.sockets * self.cores
        return [t * row + node * self.cores + c for t in range(self.threads) for c in range(self.cores)]

    def madt(self) -> bytes:
        """The body of the interrupt table (ACPI 6.5 section 5.2.12); QEMU adds header and checksum."""
        thread_bits, core_bits = (self.threads - 1).bit_length(), (self.cores - 1).bit_length()
        body = struct.pack("<II", _LOCAL_APIC, 1)
        for thread in range(self.threads):
            for socket in range(self.sockets):
                for core in range(self.cores):
                    slot = (socket * self.cores + core) * self.threads + thread  # QEMU's number of the CPU
                    apic = socket << (core_bits + thread_bits) | core << thread_bits | thread
                    body += struct.pack("<BBBBI", 0, 8, slot, apic, 1)
        body += struct.pack("<BBBBII", 1, 12, 0, 0, _IO_APIC, 0)
        for source, number, flags in _INTERRUPTS:
            body += struct.pack("<BBBBIH", 2, 10, 0, source, number, flags)
        return body + struct.pack("<BBBHB", 4, 6, 0xFF, 0, 1)

    def arguments(self, madt: Path) -> list[str]:
        """QEMU's arguments for CPUs and memory; `madt` is the file with the table."""
        total = self.sockets * self.node_memory_mib
        words = [
            *("-M", "q35,usb=off,graphics=off,smm=off,hpet=off", "-accel", "tcg,thread=multi"),
            *("-cpu", "max,vendor=GenuineIntel,-la57"),  # with QEMU's default vendor Linux sees no siblings
            *("-smp", f"{self.cpus},sockets={self.sockets},cores={self.cores},threads={self.threads}"),
            *("-m", f"{total}M", "-acpitable", f"sig=APIC,data={madt}"),
        ]
        for node in range(self.sockets):
            words += ["-object", f"memory-backend-memfd,id=m{node},size={self.node_memory_mib}M,share=on"]
            words += ["-numa", f"node,nodeid={node},memdev=m{node}"]
        for node in range(self.sockets):
            words += ["-numa", f"cpu,node-id={node},socket-id={node}"]
        for one in range(self.sockets):
            for other in range(one + 1, self.sockets):
                words += ["-numa", f"dist,src={one},dst={other},val={_REMOTE_DISTANCE}"]
        return words
