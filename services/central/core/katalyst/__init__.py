"""Katalyst's `spec.config` becomes settings of Sublet's services, each value between its bounds."""
