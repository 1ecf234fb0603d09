"""Formulas of Katalyst's controllers that central does not use."""
