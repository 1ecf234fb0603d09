"""The local runtime asks qrm, before it starts pods, whether they could run here."""

from shared.contracts.envelope import CpuList, MessagePart
from shared.contracts.pod import Pod


class AdmissionAsked(MessagePart):
    """Pods that shall be started together, in order."""

    pods: tuple[Pod, ...]


class AdmissionTold(MessagePart):
    """By namespace/name: why a pod cannot have what it asks for, and the CPUs that others would have to themselves."""

    refused: dict[str, str] = {}
    cpus: dict[str, CpuList] = {}
