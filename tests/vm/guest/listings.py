"""What the tutorial prints, word for word, and what the machine must be for it. Used inside the guest and outside."""

SHARE_4, RECLAIM_44 = "11,23,35,47", "0-10,12-22,24-34,36-46"
SHARE_6, RECLAIM_42 = "11,22-23,35,46-47", "0-10,12-21,24-34,36-45"
SHARE_8, RECLAIM_40 = "10-11,22-23,34-35,46-47", "0-9,12-21,24-33,36-45"

PRINTED = {
    "idle": {"millicpu": "44k", "share": SHARE_4, "reclaim": RECLAIM_44},
    "pod": {"millicpu": "42k", "share": SHARE_6, "reclaim": RECLAIM_42},
    "reclaimed pod": {"millicpu": "42k", "share": SHARE_6, "reclaim": RECLAIM_42},
    "peak": {"millicpu": "40k", "share": SHARE_8, "reclaim": RECLAIM_40},
    "still peak": {"millicpu": "40k", "share": SHARE_8, "reclaim": RECLAIM_40},
    "idle again": {"millicpu": "44k", "share": SHARE_4, "reclaim": RECLAIM_44},
}
"""By step of the quick start. The idle node prints 44k only; its CPUs follow from the order of taking."""
OFFERED_AT_PEAK = "4k"

NODE_CPUS = ("0-11,24-35", "12-23,36-47")
SIBLING_DISTANCE = 24

PLUGIN = "reclaimed-resource-pressure-eviction-plugin"
REASON = f"reason: met threshold in scope: katalyst.kubewharf.io/reclaimed_millicpu from plugin: {PLUGIN}"
CREATED = f"Successfully create eviction; {REASON}"
SUCCEEDED = f"Evicted pod has been deleted physically; {REASON}"
