"""Parts of qrm's settings that have a page of their own each."""
