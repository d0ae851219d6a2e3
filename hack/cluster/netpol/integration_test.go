package main

import (
	"strings"
	"testing"
)

const denyAll = `{ podSelector: {}, policyTypes: [Ingress, Egress] }`

func in(namespace, spec string) string {
	return strings.Replace(policyIn(spec), "namespace: a", "namespace: "+namespace, 1)
}

func TestRealConnections(t *testing.T) {
	l := newLab(t)
	cases := []struct {
		name            string
		policies        []string
		allowed, denied []string
	}{
		{
			name: "no policies: open, addresses of no pod closed",
			allowed: []string{"web > db:8080/tcp", "web > db:8080/udp", "web > service:80/tcp", "web > world:80/tcp",
				"web > node:8080/tcp", "world > web:8080/tcp", "node > web:8080/tcp", "db > service:80/tcp"},
			denied: []string{"stranger > web:8080/tcp", "stranger > node:8080/tcp", "stranger > world:80/tcp",
				"web > stranger:8080/tcp"},
		},
		{
			name:     "default deny",
			policies: []string{in("a", denyAll)},
			allowed:  []string{"node > web:8080/tcp", "node > web:8080/udp", "client > db:8080/tcp"},
			denied: []string{"web > worker:8080/tcp", "web > db:8080/tcp", "web > service:80/tcp", "web > world:80/tcp",
				"web > node:8080/tcp", "web > dns:53/udp", "db > web:8080/tcp", "world > web:8080/tcp"},
		},
		{
			name:     "default deny leaves a pod its own address, through a Service too",
			policies: []string{in("b", denyAll)},
			allowed:  []string{"db > db:8080/tcp", "db > service:80/tcp"},
			denied:   []string{"client > service:80/tcp", "web > service:80/tcp"},
		},
		{
			name:     "podSelector",
			policies: []string{in("b", `{ podSelector: { matchLabels: { app: db } }, ingress: [{ from: [{ podSelector: { matchLabels: { app: web } } }] }] }`)},
			allowed:  []string{"client > db:8080/tcp", "client > db:8080/udp", "client > service:80/tcp", "web > client:80/tcp"},
			denied:   []string{"web > db:8080/tcp", "web > service:80/tcp", "worker > db:8080/udp", "world > db:80/tcp"},
		},
		{
			name: "namespaceSelector, alone and with podSelector",
			policies: []string{
				in("b", `{ podSelector: { matchLabels: { app: db } }, ingress: [{ from: [{ namespaceSelector: { matchLabels: { team: red } } }] }] }`),
				in("b", `{ podSelector: { matchLabels: { app: web } }, ingress: [{ from: [{ namespaceSelector: { matchLabels: { team: red } }, podSelector: { matchLabels: { app: worker } } }] }] }`),
			},
			allowed: []string{"web > db:8080/tcp", "worker > db:80/udp", "worker > client:80/tcp"},
			denied:  []string{"client > db:8080/tcp", "dns > db:8080/tcp", "web > client:80/tcp", "db > client:80/tcp"},
		},
		{
			name:     "ipBlock with except, egress",
			policies: []string{in("a", `{ podSelector: {}, policyTypes: [Egress], egress: [{ to: [{ ipBlock: { cidr: 0.0.0.0/0, except: [10.0.0.0/8, 198.51.100.128/25] } }] }] }`)},
			allowed:  []string{"web > world:80/tcp", "web > world:80/udp", "db > web:80/tcp"},
			denied:   []string{"web > world-b:80/tcp", "web > db:80/tcp", "web > node:80/tcp", "web > service:80/tcp"},
		},
		{
			name:     "ipBlock with except, ingress",
			policies: []string{in("a", `{ podSelector: {}, ingress: [{ from: [{ ipBlock: { cidr: 10.199.0.0/24, except: [10.199.0.22/32] } }] }] }`)},
			allowed:  []string{"db > web:80/tcp", "web > world:80/tcp"},
			denied:   []string{"client > web:80/tcp", "world > web:80/tcp"},
		},
		{
			name: "egress denied with DNS open",
			policies: []string{in("a", denyAll), in("a", `{ podSelector: {}, policyTypes: [Egress], egress: [{
				to: [{ namespaceSelector: { matchLabels: { kubernetes.io/metadata.name: kube-system } }, podSelector: { matchLabels: { k8s-app: kube-dns } } }],
				ports: [{ port: 53, protocol: UDP }, { port: 53 }] }] }`)},
			allowed: []string{"web > dns:53/udp", "web > dns:53/tcp"},
			denied:  []string{"web > dns:80/tcp", "web > db:53/udp", "web > world:53/udp", "dns > web:80/tcp"},
		},
		{
			name: "ports, endPort and names",
			policies: []string{
				in("a", `{ podSelector: { matchLabels: { app: web } }, ingress: [{ ports: [{ port: 80 }, { port: 8080, endPort: 8085 }, { port: 53, protocol: UDP }] }] }`),
				in("a", `{ podSelector: { matchLabels: { app: worker } }, policyTypes: [Egress], egress: [{ ports: [{ port: main }] }] }`),
				in("b", `{ podSelector: { matchLabels: { app: db } }, ingress: [{ ports: [{ port: main }] }] }`),
			},
			allowed: []string{"db > web:80/tcp", "db > web:8080/tcp", "db > web:8085/tcp", "db > web:53/udp",
				"client > db:8080/tcp", "worker > db:8080/tcp", "worker > service:80/tcp"},
			denied: []string{"db > web:8090/tcp", "db > web:80/udp", "db > web:53/tcp", "client > db:80/tcp",
				"worker > db:80/tcp", "worker > client:8080/tcp"},
		},
		{
			name: "both ends must allow, and policies add up",
			policies: []string{
				in("a", denyAll),
				in("a", `{ podSelector: { matchLabels: { app: web } }, policyTypes: [Egress], egress: [{ to: [{ podSelector: {} }] }] }`),
				in("a", `{ podSelector: { matchLabels: { app: worker } }, ingress: [{ from: [{ podSelector: {} }] }] }`),
			},
			allowed: []string{"web > worker:80/tcp"},
			denied:  []string{"worker > web:80/tcp", "client > worker:80/tcp"},
		},
		{
			name: "node ports without policies: open to all but addresses of no pod",
			allowed: []string{"world > nodeport:30080/tcp", "node > nodeport:30080/tcp", "node > nodeport:30080/udp",
				"client > nodeport:30080/tcp", "node > nodeport:30001/tcp", "node > hostport:8070/tcp"},
			denied: []string{"node > nodeport:30099/tcp", "world > nodeport:30099/tcp"},
		},
		{
			name:     "node ports under a default deny; all else of the node stays open",
			policies: []string{in("b", denyAll)},
			allowed: []string{"node > db:8080/tcp", "node > service:80/tcp", "node > hostport:8070/tcp",
				"node > nodeport:30001/tcp", "web > world:80/tcp"},
			denied: []string{"node > nodeport:30080/tcp", "node > nodeport:30080/udp", "node-b > nodeport:30080/tcp",
				"world > nodeport:30080/tcp", "web > nodeport:30080/tcp"},
		},
		{
			name:     "a node port's white list names the node",
			policies: []string{in("b", `{ podSelector: {}, ingress: [{ from: [{ ipBlock: { cidr: 10.199.0.1/32 } }], ports: [{ port: 8080 }] }] }`)},
			allowed:  []string{"node > nodeport:30080/tcp", "node > db:80/tcp"},
			denied: []string{"node-b > nodeport:30080/tcp", "node > nodeport:30080/udp", "world > nodeport:30080/tcp",
				"web > nodeport:30080/tcp"},
		},
		{
			name:     "a node port's white list without a black list, by the clients' own addresses",
			policies: []string{in("b", `{ podSelector: {}, ingress: [{ from: [{ ipBlock: { cidr: 198.51.100.0/24, except: [198.51.100.128/25] } }] }] }`)},
			allowed:  []string{"world > nodeport:30080/tcp", "world > nodeport:30080/udp", "node-b > nodeport:30080/tcp"},
			denied:   []string{"world-b > nodeport:30080/tcp", "world-b > nodeport:30080/udp", "node > nodeport:30080/tcp"},
		},
	}
	for _, row := range cases {
		t.Run(row.name, func(t *testing.T) {
			l.t = t
			l.enforce(row.policies...)
			l.expect(true, row.allowed...)
			l.expect(false, row.denied...)
		})
	}
	t.Run("link-local IPv6 leads past no rules", func(t *testing.T) { l.t = t; testIPv6(l) })
	t.Run("open connections", func(t *testing.T) { l.t = t; testOpenConnections(l) })
	t.Run("open connections through node ports", func(t *testing.T) { l.t = t; testOpenNodePorts(l) })
	t.Run("a pod sees who calls its node port", func(t *testing.T) { l.t = t; testNodePortClients(l) })
	t.Run("what is cut stays cut", func(t *testing.T) { l.t = t; testCutStaysCut(l) })
	t.Run("a replacement opens no gap", func(t *testing.T) { l.t = t; testNoGap(l) })
	t.Run("flush opens, a start on a bare machine closes", func(t *testing.T) { l.t = t; testFlush(l) })
}
