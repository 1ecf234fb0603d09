"""The lease bounds how long reclaimed limits hold: its file, its lock, qrm's side of it, and the watchdog's."""
