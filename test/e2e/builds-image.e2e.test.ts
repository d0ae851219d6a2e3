/** What build pods rely on: the builder's image, the Git server, the base images and the registry's tokens, without the platform. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { mintRegistryToken, type RegistryAccess } from "@slipway/crds";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildsRegistryHost } from "../../hack/cluster/addresses.ts";
import { builderSeccompProfile } from "../../hack/cluster/builds/seccomp.ts";
import { paths } from "../../hack/cluster/components.ts";
import { builder } from "../../hack/images/builder.ts";
import { buildImage, importImage } from "../../hack/images/index.ts";
import { builderUser } from "../../hack/images/processes.ts";
import { readEnvFile } from "../../hack/lib/env-file.ts";
import { run } from "../../hack/lib/exec.ts";
import { pkiDir, stackFile, toolDir } from "../../hack/lib/paths.ts";
import { waitFor } from "../../hack/lib/wait.ts";

const namespace = `e2e-builder-image-${Date.now().toString(36)}`;
const git = readEnvFile(stackFile);
const kubectl = (args: string[], input?: string): Promise<string> =>
  run(join(toolDir, "kubectl"), ["--kubeconfig", git.KUBECONFIG ?? "", "-n", namespace, ...args], { input });

const dockerfile = `FROM ${buildsRegistryHost}/base/node:24
WORKDIR /app
COPY package.json package-lock.json ./
USER 0
RUN --mount=type=cache,target=/cache/npm NPM_CONFIG_CACHE=/cache/npm npm ci --no-audit --no-fund
COPY . .
USER 1000:1000
CMD ["npm", "start"]
`;

const fetchScript = `
helper='!f() { echo "username=$GIT_USER"; echo "password=$(cat /secrets/git/token)"; }; f'
git -c http.sslCAInfo=/settings/ca.crt -c credential.helper="$helper" clone -q --depth 1 "$GIT_URL/slipway/sample-node.git" /workspace/source
mkdir /workspace/plan
cp /settings/Dockerfile /workspace/plan`;

const buildScript = `
export XDG_RUNTIME_DIR=/tmp/run DOCKER_CONFIG=/secrets/pull BUILDKIT_HOST=unix:///tmp/run/buildkit.sock
mkdir -p $XDG_RUNTIME_DIR
printf '[registry."${buildsRegistryHost}"]\\n  ca = ["/settings/ca.crt"]\\n' > /tmp/buildkitd.toml
rootlesskit --net=host --copy-up=/run buildkitd --rootless --oci-worker-no-process-sandbox \\
  --root /cache/buildkit --config /tmp/buildkitd.toml --addr $BUILDKIT_HOST > /tmp/buildkitd.log 2>&1 &
daemon=$!
until buildctl debug workers > /dev/null 2>&1; do kill -0 $daemon || { cat /tmp/buildkitd.log; exit 1; }; sleep 0.2; done
buildctl build --progress=plain --frontend dockerfile.v0 --local context=/workspace/source --local dockerfile=/workspace/plan \\
  --output type=oci,dest=/workspace/image,tar=false
kill $daemon`;

const pushScript = `
export DOCKER_CONFIG=/secrets/push SSL_CERT_FILE=/settings/ca.crt
crane push /workspace/image ${buildsRegistryHost}/e2e/builder-image:latest
for other in e2e/another base/node; do
  crane push /workspace/image ${buildsRegistryHost}/$other:stolen && exit 1
done
echo "pushed to its own repository alone"`;

/** A container of the builder's image with one folder of secrets of its own. */
function container(
  image: string,
  name: string,
  script: string,
  secret: string,
  usesNamespaces = false,
): object {
  const dropped = { drop: ["ALL"] };
  const closed = {
    allowPrivilegeEscalation: false,
    seccompProfile: { type: "RuntimeDefault" },
    capabilities: dropped,
  };
  const open = {
    seccompProfile: { type: "Localhost", localhostProfile: builderSeccompProfile },
    capabilities: { ...dropped, add: ["SETUID", "SETGID"] },
  };
  return {
    name,
    image,
    command: ["/bin/sh", "-ec", script],
    env: [
      { name: "GIT_URL", value: git.SLIPWAY_GIT_URL },
      { name: "GIT_USER", value: git.SLIPWAY_GIT_USERNAME },
    ],
    securityContext: {
      runAsUser: builderUser,
      runAsGroup: builderUser,
      runAsNonRoot: true,
      ...(usesNamespaces ? open : closed),
    },
    resources: { requests: { cpu: "100m", memory: "128Mi" }, limits: { memory: "1Gi" } },
    volumeMounts: [
      { name: "work", mountPath: "/workspace" },
      { name: "cache", mountPath: "/cache" },
      { name: "settings", mountPath: "/settings" },
      { name: secret, mountPath: `/secrets/${secret}` },
    ],
  };
}

beforeAll(async () => {
  const labels = { "pod-security.kubernetes.io/enforce": "baseline" };
  await kubectl(
    ["create", "-f", "-"],
    JSON.stringify({ apiVersion: "v1", kind: "Namespace", metadata: { name: namespace, labels } }),
  );
  const key = await readFile(join(pkiDir, "builds-registry-token.key"), "utf8");
  const docker = (access: RegistryAccess[]): Record<string, string> => {
    const registrytoken = mintRegistryToken(key, "e2e", access, 600);
    return { "config.json": JSON.stringify({ auths: { [buildsRegistryHost]: { registrytoken } } }) };
  };
  const secrets = {
    git: { token: git.SLIPWAY_GIT_TOKEN },
    pull: docker([{ repository: "base/node", actions: ["pull"] }]),
    push: docker([{ repository: "e2e/builder-image", actions: ["pull", "push"] }]),
  };
  // As hack/up.sh delivers it; once more where its sources have changed since.
  const image = await buildImage(builder());
  await importImage(image, paths.containerdSocket);
  const pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "build" },
    spec: {
      restartPolicy: "Never",
      automountServiceAccountToken: false,
      securityContext: { fsGroup: builderUser },
      initContainers: [
        container(image.reference, "fetch", fetchScript, "git"),
        container(image.reference, "build", buildScript, "pull", true),
      ],
      containers: [container(image.reference, "push", pushScript, "push")],
      volumes: [
        { name: "work", emptyDir: {} },
        { name: "cache", emptyDir: {} },
        { name: "settings", configMap: { name: "settings" } },
        ...Object.keys(secrets).map((name) => ({ name, secret: { secretName: name } })),
      ],
    },
  };
  const settings = { Dockerfile: dockerfile, "ca.crt": await readFile(git.SLIPWAY_GIT_CA ?? "", "utf8") };
  const items = [
    { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "settings" }, data: settings },
    ...Object.entries(secrets).map(([name, stringData]) => {
      return { apiVersion: "v1", kind: "Secret", metadata: { name }, stringData };
    }),
    pod,
  ];
  await kubectl(["create", "-f", "-"], JSON.stringify({ apiVersion: "v1", kind: "List", items }));
});

afterAll(async () => {
  await kubectl(["delete", "namespace", namespace, "--wait=false"]);
});

test("a pod without rights builds the sample from the Git server and pushes it to its own repository alone", async () => {
  const phase = await waitFor("the pod's end", 150_000, async () => {
    const now = await kubectl(["get", "pod", "build", "-o", "jsonpath={.status.phase}"]);
    return now === "Succeeded" || now === "Failed" ? now : undefined;
  });
  const log = await kubectl(["logs", "build", "--all-containers"]).catch((error: Error) => error.message);
  expect(phase, log).toBe("Succeeded");
  expect(log).toMatch(/RUN --mount=type=cache/);
  expect(log).toMatch(/e2e\/builder-image@sha256:[0-9a-f]{64}/);
  expect(log.match(/401 Unauthorized/g)).toHaveLength(2);
  expect(log).toContain("pushed to its own repository alone");
  expect(log).not.toContain(git.SLIPWAY_GIT_TOKEN);
});
