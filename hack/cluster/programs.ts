/** Which Go programs the embedded cluster and tests run, and what each is built from. */
import type { ReplacedFile } from "./go-modules.ts";

/** Version of Kubernetes that the embedded cluster runs; the same as in go.mod. */
export const kubernetesVersion = "v1.34.4";

/** What a binary is built from. */
export interface Binary {
  /** Folder of its go.mod under hack/cluster. */
  module: string;
  /** Package to build, as `go build` takes it. */
  package: string;
  /** Folder of own sources, where there are any. */
  sources?: string;
  ldflags?: string;
  /** Build tags, comma-separated. */
  tags?: string;
  /** Whether parts of it are C: needs gcc, and links to this machine's C library. */
  cgo?: true;
  /** Files or folders of its Go module that are kept beside the binary: where the module has them, by the name they get. */
  files?: { module: string; paths: Record<string, string> };
  /** A file of a module of others that is ours in this binary. */
  replaced?: ReplacedFile;
  /** Seconds that a cold build took on 2 cores, to say how long it may take. */
  cold: number;
}

const versionFlags = ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"]
  .flatMap((path) => [
    `-X ${path}.gitVersion=${kubernetesVersion}`,
    `-X ${path}.gitMajor=${kubernetesVersion.slice(1).split(".")[0]}`,
    `-X ${path}.gitMinor=${kubernetesVersion.split(".")[1]}`,
    `-X ${path}.gitTreeState=clean`,
  ])
  .join(" ");

/** The same as in its go.mod; its API reports it. */
const giteaVersion = "1.26.0";
const buildkitFlags = "-X github.com/moby/buildkit/version.Version=v0.31.2";

/** Every Go program of the embedded cluster, by name. */
export const binaries = {
  kubernetes: {
    module: ".",
    package: "./kubernetes",
    sources: "kubernetes",
    ldflags: versionFlags,
    cold: 290,
  },
  netpol: { module: ".", package: "./netpol", sources: "netpol", cold: 15 },
  volumes: { module: "volumes", package: ".", sources: ".", cold: 20 },
  pause: { module: ".", package: "./pause", sources: "pause", cold: 2 },
  helm: { module: "helm", package: "helm.sh/helm/v3/cmd/helm", cold: 70 },
  coredns: { module: "coredns", package: "github.com/coredns/coredns", cold: 100 },
  registry: { module: "registry", package: "github.com/distribution/distribution/v3/cmd/registry", cold: 52 },
  "metrics-server": {
    module: "metrics-server",
    package: "sigs.k8s.io/metrics-server/cmd/metrics-server",
    cold: 110,
  },
  traefik: {
    module: "traefik",
    package: "github.com/traefik/traefik/v3/cmd/traefik",
    files: {
      module: "github.com/traefik/traefik/v3",
      paths: {
        "definitions.yaml": "docs/content/reference/dynamic-configuration/kubernetes-crd-definition-v1.yml",
      },
    },
    replaced: {
      module: "github.com/go-acme/lego/v4",
      file: "providers/dns/zz_gen_dns_providers.go",
      by: "dns/none.go",
    },
    cold: 220,
  },
  gitea: {
    module: "gitea",
    package: "code.gitea.io/gitea",
    ldflags: `-X main.Version=${giteaVersion}`,
    tags: "sqlite,sqlite_unlock_notify",
    cgo: true,
    // What it reads at run time: pages, texts, templates of licenses and the like.
    files: {
      module: "code.gitea.io/gitea",
      paths: { templates: "templates", options: "options", public: "public" },
    },
    cold: 220,
  },
  buildkitd: {
    module: "buildkit",
    package: "github.com/moby/buildkit/cmd/buildkitd",
    ldflags: buildkitFlags,
    cold: 60,
  },
  buildctl: {
    module: "buildkit",
    package: "github.com/moby/buildkit/cmd/buildctl",
    ldflags: buildkitFlags,
    cold: 10,
  },
  rootlesskit: {
    module: "rootlesskit",
    package: "github.com/rootless-containers/rootlesskit/v3/cmd/rootlesskit",
    cold: 10,
  },
  crane: { module: "crane", package: "github.com/google/go-containerregistry/cmd/crane", cold: 15 },
  kind: { module: "kind", package: "sigs.k8s.io/kind", cold: 4 },
  // Makes the nodes of kind's own image: see hack/cluster/kind/node.
  kubeadm: { module: "kubeadm", package: "k8s.io/kubernetes/cmd/kubeadm", ldflags: versionFlags, cold: 60 },
  kwok: { module: "kwok", package: "sigs.k8s.io/kwok/cmd/kwok", cold: 63 },
  versitygw: { module: "s3", package: "github.com/versity/versitygw/cmd/versitygw", cold: 70 },
  // Reads the workflows of .github: see hack/verify.sh.
  actionlint: { module: "actionlint", package: "github.com/rhysd/actionlint/cmd/actionlint", cold: 8 },
} satisfies Record<string, Binary>;

export type BinaryName = keyof typeof binaries;
