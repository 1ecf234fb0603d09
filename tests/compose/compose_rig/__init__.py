"""A container engine of the tests' own, with compose v2 and a base image, built once into a cache."""
