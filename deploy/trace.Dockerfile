# An image of Sublet with the packages of tracing in it, which the three images leave out. From the root of the checkout:
#   docker build -f deploy/trace.Dockerfile --build-arg IMAGE=sublet-node:0.1.0 -t sublet-node-traced:0.1.0 .
ARG IMAGE=sublet
ARG BASE=python:3.13-slim-bookworm
FROM ${BASE} AS packages
COPY requirements/trace.txt /tmp/
RUN python3 -m venv /opt/pip && /opt/pip/bin/pip install --quiet --no-cache-dir --disable-pip-version-check \
      --no-compile --require-hashes --only-binary=:all: --target /opt/trace -r /tmp/trace.txt

FROM ${IMAGE}
COPY --from=packages /opt/trace /opt/trace
# What both have is pinned to one version, so it does not matter which is found first.
ENV PYTHONPATH=/opt/sublet/src:/opt/trace
