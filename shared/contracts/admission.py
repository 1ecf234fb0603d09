"""May these pods run here? Asked of qrm before a pod is started, where the local runtime does the admission."""

from shared.contracts.envelope import CpuList, MessagePart
from shared.contracts.pod import Pod


class AdmissionAsked(MessagePart):
    """Pods that shall be started together, in order."""

    pods: tuple[Pod, ...]


class AdmissionTold(MessagePart):
    """By namespace/name: why a pod cannot have what it asks for, and the CPUs that others would have to themselves."""

    refused: dict[str, str] = {}
    cpus: dict[str, CpuList] = {}
