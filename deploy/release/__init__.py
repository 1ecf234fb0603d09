"""A release from a clean checkout: version, changelog, checks, tag, and what `make dist` builds."""
