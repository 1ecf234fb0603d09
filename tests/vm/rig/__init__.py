"""An emulated machine of any CPU topology with a real Linux kernel: built once into a cache, booted for one command."""
