"""Parts of qrm's settings that belong to devices of the node."""
