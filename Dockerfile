# The image that "pmk-sched build" makes, for those who build with Docker:
#
#   pmk-sched build --branch v1.24.3 --binary kube-scheduler
#   docker build --build-arg RELEASE=v1.24.3 --build-arg VERSION=v1.24.3 -t my-scheduler:v1.24.3 .
#
# The binary is static and for one platform; "docker build --platform" has to name the same. BASE=busybox@sha256:… pins the base image.
ARG BASE=busybox
FROM ${BASE}

ARG TITLE=kube-scheduler
ARG VERSION=
ARG URL=https://github.com/pmk-sched/pmk-sched
ARG RELEASE=
ARG PLUGINS=
ARG ORIGIN=

LABEL org.opencontainers.image.title="${TITLE}" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.source="${URL}" \
      pmk-sched.io/release="${RELEASE}" \
      pmk-sched.io/plugins="${PLUGINS}" \
      pmk-sched.io/source="${ORIGIN}"

COPY --chown=0:0 --chmod=0755 kube-scheduler /usr/local/bin/kube-scheduler

USER 65532:65532
ENTRYPOINT ["/usr/local/bin/kube-scheduler"]
