/** A kubeconfig of a fake apiserver, which serves plain HTTP. JSON is YAML. */
export function fakeKubeconfig(url: string): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "fake", cluster: { server: url, "insecure-skip-tls-verify": true } }],
    users: [{ name: "nobody", user: {} }],
    contexts: [{ name: "fake", context: { cluster: "fake", user: "nobody" } }],
    "current-context": "fake",
  });
}
