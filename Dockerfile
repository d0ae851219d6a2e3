# The operator, the API server and the builder of builds from Git, for a registry of your own:
#
#   docker build --target operator   -t REGISTRY/slipway/operator:VERSION .
#   docker build --target api-server -t REGISTRY/slipway/api-server:VERSION .
#   docker build --target builder    -t REGISTRY/slipway/builder:VERSION .
#
# hack/images builds the same without upstream images. Pin both images to the digests that you have checked.
ARG NODE_IMAGE=docker.io/library/node:24-slim
ARG BUILDKIT_IMAGE=docker.io/moby/buildkit:v0.31.2-rootless

FROM ${NODE_IMAGE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
COPY crds/package.json crds/
COPY packages/process/package.json packages/process/
COPY packages/controller-runtime/package.json packages/controller-runtime/
COPY packages/ledger/package.json packages/ledger/
COPY operator/package.json operator/
COPY api-server/package.json api-server/
COPY builder/package.json builder/
COPY packages/git/package.json packages/git/
COPY packages/analytics/package.json packages/analytics/
COPY collector/package.json collector/
COPY recovery/package.json recovery/
COPY hack/package.json hack/
COPY test/package.json test/
# The root's own dependency is the Node binary, which the base image has.
# Behind a proxy with a CA of its own: --secret id=ca,src=FILE.
RUN --mount=type=secret,id=ca if [ -s /run/secrets/ca ]; then export NODE_EXTRA_CA_CERTS=/run/secrets/ca; fi; \
    npm ci --omit=dev --ignore-scripts --no-audit --no-fund \
      --workspace crds --workspace packages/process --workspace packages/controller-runtime --workspace packages/ledger --workspace packages/git --workspace builder --workspace packages/analytics --workspace collector --workspace operator --workspace api-server \
    && rm -rf hack test recovery

FROM dependencies AS sources
COPY crds crds
COPY packages packages
COPY builder builder
COPY collector collector
COPY operator operator
COPY api-server api-server

FROM sources AS bundles
COPY hack hack
COPY test/package.json test/
RUN --mount=type=secret,id=ca if [ -s /run/secrets/ca ]; then export NODE_EXTRA_CA_CERTS=/run/secrets/ca; fi; \
    npm ci --ignore-scripts --no-audit --no-fund && node hack/images/bundle.ts

FROM ${NODE_IMAGE} AS platform
ENV NODE_ENV=production
WORKDIR /app
COPY --from=sources /app ./
COPY --from=bundles /app/dist dist
USER 65532:65532

FROM platform AS operator
EXPOSE 9090
CMD ["node", "dist/operator.js"]

FROM platform AS api-server
EXPOSE 8080 9090
CMD ["node", "dist/api-server.js"]

FROM ${BUILDKIT_IMAGE} AS buildkit

# BuildKit and buildah for a user without rights: user namespaces are set up by two programs with a capability each.
FROM platform AS builder
USER 0:0
# Behind a proxy with a CA of its own, as above.
RUN --mount=type=secret,id=ca if [ -s /run/secrets/ca ]; then echo 'Acquire::https::CAInfo "/run/secrets/ca";' > /etc/apt/apt.conf.d/ca; fi; \
    apt-get update \
    && apt-get install -y --no-install-recommends buildah ca-certificates git libcap2-bin runc uidmap \
    && rm -rf /var/lib/apt/lists/* /etc/apt/apt.conf.d/ca \
    && chmod u-s /usr/bin/newuidmap /usr/bin/newgidmap \
    && setcap cap_setuid=ep /usr/bin/newuidmap \
    && setcap cap_setgid=ep /usr/bin/newgidmap \
    && for file in /etc/subuid /etc/subgid; do echo 1000:100000:65536 > "$file"; done
COPY --from=buildkit /usr/bin/buildctl /usr/bin/buildkitd /usr/bin/rootlesskit /usr/local/bin/
ENV HOME=/home/node
USER 1000:1000
CMD ["node", "builder/src/main.ts"]
