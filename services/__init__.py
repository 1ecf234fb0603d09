"""The six services. None imports another: they meet in `shared.contracts`."""

from services import plain_structlog as plain_structlog
