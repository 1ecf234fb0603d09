"""The checkpoint keeps what qrm has applied for its next life: the file, and its writer in the background."""
