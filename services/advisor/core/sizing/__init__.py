"""Stages make pool sizes of needs: regions, reserves, regulator, assembler."""
