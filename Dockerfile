# Images of cloud and agent (docs/guides/containers.md). Both run as user 10001 with a read-only root filesystem.
# BUILD_BASE compiles SQLite if npm finds no compiled one, so it contains Python, make and a C++ compiler.
ARG BUILD_BASE=docker.io/library/node:24-trixie
ARG BASE=docker.io/library/node:24-trixie-slim

FROM ${BUILD_BASE} AS build
WORKDIR /src
# The layer of the dependencies. Later steps of this stage use no network.
COPY .npmrc package.json package-lock.json ./
RUN npm ci
ENV npm_config_offline=true
COPY . .
RUN npm run build && packaging/stage /opt/cloud
# Only the cloud handles pictures.
RUN cp -a /opt/cloud /opt/edge && rm -r /opt/edge/node_modules/sharp /opt/edge/node_modules/@img

FROM ${BASE} AS untag
ENV NODE_ENV=production UNTAG_DATA_DIR=/data
# Volumes get the owner of these folders.
RUN install -d -o 10001 -g 10001 -m 700 /data /keys /backups /broker
WORKDIR /opt/untag
USER 10001:10001
ENTRYPOINT ["node", "--max-semi-space-size=4", "/opt/untag/bin/untag.js"]

FROM untag AS edge
COPY --from=build /opt/edge /opt/untag
HEALTHCHECK --interval=10s --timeout=10s --start-period=60s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.UNTAG_PORT || 8090}/healthz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
CMD ["edge"]

FROM untag AS cloud
USER root
# pg_dump and pg_restore, for backups of PostgreSQL.
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends postgresql-client && rm -rf /var/lib/apt/lists/*
USER 10001:10001
COPY --from=build /opt/cloud /opt/untag
# Only the network of the containers reaches this address.
ENV UNTAG_HOST=0.0.0.0
EXPOSE 8080 1883
HEALTHCHECK --interval=10s --timeout=10s --start-period=60s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.UNTAG_PORT || 8080}/healthz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
CMD ["cloud"]
