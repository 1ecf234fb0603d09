"""The six services. None imports another: they meet in `shared.contracts`."""

from shared import plain_structlog as plain_structlog
