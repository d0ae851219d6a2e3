# The operator and the API server, for a registry of your own:
#
#   docker build --target operator   -t REGISTRY/slipway/operator:VERSION .
#   docker build --target api-server -t REGISTRY/slipway/api-server:VERSION .
#
# hack/images builds the same without upstream images. Pin NODE_IMAGE to the digest that you have checked.
ARG NODE_IMAGE=docker.io/library/node:24-slim

FROM ${NODE_IMAGE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
COPY crds/package.json crds/
COPY kube/package.json kube/
COPY ledger/package.json ledger/
COPY operator/package.json operator/
COPY api-server/package.json api-server/
COPY builder/package.json builder/
COPY git/package.json git/
COPY analytics/package.json analytics/
COPY hack/package.json hack/
COPY test/package.json test/
# The root's own dependency is the Node binary, which the base image has.
# Behind a proxy with a CA of its own: --secret id=ca,src=FILE.
RUN --mount=type=secret,id=ca if [ -s /run/secrets/ca ]; then export NODE_EXTRA_CA_CERTS=/run/secrets/ca; fi; \
    npm ci --omit=dev --ignore-scripts --no-audit --no-fund \
      --workspace crds --workspace kube --workspace ledger --workspace builder --workspace git --workspace analytics --workspace operator --workspace api-server \
    && rm -rf hack test

FROM ${NODE_IMAGE} AS platform
ENV NODE_ENV=production
WORKDIR /app
COPY --from=dependencies /app ./
COPY package.json ./
COPY crds crds
COPY kube kube
COPY ledger ledger
COPY builder builder
COPY git git
COPY analytics analytics
COPY operator operator
COPY api-server api-server
USER 65532:65532

FROM platform AS operator
EXPOSE 9090
CMD ["node", "operator/src/main.ts"]

FROM platform AS api-server
EXPOSE 8080 9090
CMD ["node", "api-server/src/main.ts"]
