"""The lease from qrm's side: renewed before anything is written, and removed once everything is given back."""
