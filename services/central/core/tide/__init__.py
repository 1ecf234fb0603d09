"""Rules of tide pools: which side each node is on, when one changes it, and what marks it carries."""
