"""The plugins' kit holds what several of them need: figures of pods, rings of samples, sequences of moments."""
