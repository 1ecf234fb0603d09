"""The command line, the supervisor of one host, the simulator."""

from shared.build import VERSION

__version__ = VERSION
