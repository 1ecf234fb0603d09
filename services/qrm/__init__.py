"""qrm: which CPUs and memory nodes each pool and pod has, and the ordered writes."""
