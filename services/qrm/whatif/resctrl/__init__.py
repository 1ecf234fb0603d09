"""Questions about caches and memory bandwidth (area `isolation`), each answered by a function that qrm writes by."""

AREA = "isolation"
