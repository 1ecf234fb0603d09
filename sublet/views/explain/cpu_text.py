"""The document of `sublet.views.explain.cpu` as text, from the CPU back to the sample."""

from collections.abc import Iterator

from sublet.views.explain.chain import Document
from sublet.views.explain.chain_text import advice_lines, allocation_words, reason_lines, usage_words
from sublet.views.figures import UNKNOWN, cores


def cpu_lines(document: Document) -> Iterator[str]:
    """One line after the other."""
    state = {True: "online", False: "offline", None: "online or not is not known"}[document["online"]]
    yield f"cpu {document['cpu']} of {document['node']}  {state}  {_place_words(document['place'])}"
    yield from _pool_lines(document)
    yield from _pod_lines(document)
    yield from advice_lines(document["advice"])
    yield from _sample_lines(document["sample"])
    for service in document["silent"]:
        yield f"{service} does not answer: its part is not known"


def _place_words(place: Document) -> str:
    numa = UNKNOWN if place["numa"] is None else place["numa"]
    if place["core"] is None:
        return f"NUMA node {numa}; socket, core and siblings are not told"
    siblings = f" with {place['siblings']}" if place["siblings"] else ", no siblings"
    l3 = "" if place["l3"] is None else f"; L3 cache {place['l3']} of {place['l3_cpus']}"
    return f"socket {place['socket']}, NUMA node {numa}, core {place['core']}{siblings}{l3}"


def _pool_lines(document: Document) -> Iterator[str]:
    allocation = document["allocation"]
    if allocation is None:
        yield "  pool: not known"
        return
    for pool in document["pools"]:
        nodes = ", ".join(f"{count} on NUMA {numa}" for numa, count in pool["count_by_numa"].items())
        yield f"  in pool {pool['pool']}: {pool['cpus']} ({pool['count']} CPUs{f': {nodes}' if nodes else ''})"
    if not document["pools"]:
        yield "  in no pool"
    yield f"  by {allocation_words(allocation)}"
    yield from reason_lines(allocation["why"])
    if allocation["meaning"]:
        yield f"    in words: {allocation['meaning']}"
    for condition in document["conditions"]:
        yield f"  but {condition['type']}: {condition['message']}"


def _pod_lines(document: Document) -> Iterator[str]:
    for pod in document["pods"] or ():
        usage = f"uses {usage_words(pod['usage'])}" if pod["usage"] else "use is not known"
        yield f"  may run {pod['namespace']}/{pod['name']}  {pod['qos'] or UNKNOWN} on {pod['cpus']}: {usage}"
    if document["pods"] == []:
        yield "  no pod runs on it"


def _sample_lines(sample: Document | None) -> Iterator[str]:
    if sample is None:
        yield "  sample: not known"
        return
    yield f"  newest {sample['ref']} ({sample['trigger']}): the node uses {cores(sample['node_cpu_usage_cores'])} cores"
    for name, usage in sample["pools"].items():
        yield f"    {name}: {usage_words(usage)}"
