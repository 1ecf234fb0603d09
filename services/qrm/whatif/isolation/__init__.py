"""Questions about isolation (area `isolation`), each answered by a function that qrm writes by."""
