import type { KubernetesObject } from "@slipway/controller-runtime";
import type { Widget } from "./harness.ts";

/**
 * One child of every kind, written as people write them and not as the apiserver keeps them: quantities that it
 * rewrites, empty values that it drops, fields that it defaults, `stringData`.
 */
export function childrenOfEveryKind(widget: Widget): KubernetesObject[] {
  const { name, namespace } = widget.metadata;
  const size = widget.spec?.size ?? 1;
  const selector = { matchLabels: { app: name } };
  const template = {
    metadata: { labels: { app: name }, annotations: {} },
    spec: {
      automountServiceAccountToken: false,
      hostNetwork: false,
      initContainers: [],
      containers: [
        {
          name: "app",
          image: "example.test/app@sha256:0000000000000000000000000000000000000000000000000000000000000000",
          command: [],
          env: [
            { name: "EMPTY", value: "" },
            { name: "A", value: "1000m" },
          ],
          ports: [{ name: "http", containerPort: 8080 }],
          resources: {
            requests: { cpu: "0.1", memory: "1024Mi" },
            limits: { cpu: "1000m", memory: "2048Mi" },
          },
          readinessProbe: { tcpSocket: { port: "http" }, initialDelaySeconds: 0, periodSeconds: 5 },
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"], add: [] } },
          volumeMounts: [
            { name: "tmp", mountPath: "/tmp" },
            { name: "tmp", mountPath: "/var/tmp", readOnly: false },
          ],
        },
      ],
      volumes: [{ name: "tmp", emptyDir: { sizeLimit: "0.5Gi" } }],
      securityContext: { seccompProfile: { type: "RuntimeDefault" } },
      topologySpreadConstraints: [
        {
          maxSkew: 1,
          topologyKey: "kubernetes.io/hostname",
          whenUnsatisfiable: "ScheduleAnyway",
          labelSelector: selector,
        },
      ],
    },
  };
  const child = (apiVersion: string, kind: string, rest: object): KubernetesObject => ({
    apiVersion,
    kind,
    metadata: { name, namespace },
    ...rest,
  });
  return [
    child("v1", "ConfigMap", { data: { size: String(size), empty: "" } }),
    child("v1", "Secret", { type: "Opaque", stringData: { password: `p-${size}` } }),
    child("v1", "ServiceAccount", { automountServiceAccountToken: false }),
    child("v1", "Service", {
      spec: { selector: { app: name }, ports: [{ name: "http", port: 80, targetPort: "http" }] },
    }),
    child("v1", "PersistentVolumeClaim", {
      spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1024Mi" } } },
    }),
    child("v1", "ResourceQuota", {
      spec: { hard: { "requests.cpu": "4000m", "limits.memory": "2048Mi", pods: 10 } },
    }),
    child("v1", "LimitRange", {
      spec: { limits: [{ type: "Container", default: { cpu: "1000m" }, defaultRequest: { cpu: "0.1" } }] },
    }),
    child("apps/v1", "Deployment", {
      spec: {
        replicas: size,
        selector,
        strategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
        template,
      },
    }),
    child("apps/v1", "StatefulSet", {
      spec: {
        replicas: 0,
        serviceName: name,
        selector,
        template,
        volumeClaimTemplates: [
          {
            metadata: { name: "data" },
            spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1.5Gi" } } },
          },
        ],
      },
    }),
    child("batch/v1", "CronJob", {
      spec: {
        schedule: "*/5 * * * *",
        timeZone: "Etc/UTC",
        suspend: false,
        jobTemplate: {
          spec: {
            backoffLimit: 0,
            suspend: true,
            template: { ...template, spec: { ...template.spec, restartPolicy: "Never" } },
          },
        },
      },
    }),
    child("networking.k8s.io/v1", "Ingress", {
      spec: {
        ingressClassName: "test",
        rules: [
          {
            host: `${name}.test`,
            http: {
              paths: [
                {
                  path: "/",
                  pathType: "Prefix",
                  backend: { service: { name: name ?? "", port: { name: "http" } } },
                },
              ],
            },
          },
        ],
      },
    }),
    child("networking.k8s.io/v1", "NetworkPolicy", {
      spec: {
        podSelector: {},
        policyTypes: ["Ingress", "Egress"],
        ingress: [],
        egress: [
          {
            to: [{ namespaceSelector: {}, podSelector: selector }],
            ports: [{ port: 53, protocol: "UDP" }, { port: 53 }],
          },
          { to: [{ ipBlock: { cidr: "0.0.0.0/0", except: ["10.0.0.0/8"] } }] },
        ],
      },
    }),
    child("policy/v1", "PodDisruptionBudget", { spec: { maxUnavailable: 1, selector } }),
    child("autoscaling/v2", "HorizontalPodAutoscaler", {
      spec: {
        scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name },
        minReplicas: 1,
        maxReplicas: 3,
        metrics: [
          {
            type: "Resource",
            resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 80 } },
          },
        ],
      },
    }),
  ];
}
