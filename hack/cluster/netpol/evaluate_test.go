package main

import (
	"net/netip"
	"strings"
	"testing"
)

const (
	podWeb    = "10.244.0.11"
	podWorker = "10.244.0.12"
	podOther  = "10.244.0.21"
	outside   = "198.51.100.7"
	unknown   = "10.244.0.99"
)

const twoNamespaces = `apiVersion: v1
kind: Namespace
metadata: { name: a, labels: { team: red } }
---
apiVersion: v1
kind: Namespace
metadata: { name: b, labels: { team: blue } }
---
apiVersion: v1
kind: Pod
metadata: { namespace: a, name: web, labels: { app: web } }
spec: { containers: [{ name: app, ports: [{ name: http, containerPort: 8080 }] }] }
status: { phase: Running, podIP: 10.244.0.11 }
---
apiVersion: v1
kind: Pod
metadata: { namespace: a, name: worker, labels: { app: worker, tier: back } }
status: { phase: Running, podIP: 10.244.0.12 }
---
apiVersion: v1
kind: Pod
metadata: { namespace: b, name: other, labels: { app: web } }
status: { phase: Running, podIP: 10.244.0.21 }
`

// policyIn is a policy of namespace a with the given spec, in YAML's flow style.
func policyIn(spec string) string {
	return "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: { namespace: a, name: p }\nspec: " + spec + "\n"
}

// flow reads "source > destination:port/PROTOCOL".
func flow(t *testing.T, text string) Connection {
	t.Helper()
	source, rest, _ := strings.Cut(text, " > ")
	target, protocol, _ := strings.Cut(rest, "/")
	destination, err := netip.ParseAddrPort(target)
	if err != nil {
		t.Fatal(err)
	}
	return Connection{
		Source: netip.MustParseAddr(source), Destination: destination.Addr(), Port: destination.Port(), Protocol: protocol,
	}
}

func TestAllows(t *testing.T) {
	cases := []struct {
		name, policies  string
		allowed, denied []string
	}{
		{
			name:    "without policies known pods are open and unknown addresses closed",
			allowed: []string{podOther + " > " + podWeb + ":80/TCP", podWeb + " > " + outside + ":443/TCP"},
			denied:  []string{unknown + " > " + podWeb + ":80/TCP", podWeb + " > " + unknown + ":80/TCP"},
		},
		{
			name:     "an empty spec denies ingress only",
			policies: policyIn(`{ podSelector: {} }`),
			allowed:  []string{podWeb + " > " + podOther + ":80/TCP", podWeb + " > " + podWeb + ":80/TCP"},
			denied:   []string{podOther + " > " + podWeb + ":80/TCP", podWorker + " > " + podWeb + ":80/TCP"},
		},
		{
			name:     "egress rules without types isolate both ways",
			policies: policyIn(`{ podSelector: { matchLabels: { app: web } }, egress: [{ to: [{ podSelector: {} }] }] }`),
			allowed:  []string{podWeb + " > " + podWorker + ":80/TCP", podWorker + " > " + outside + ":80/TCP"},
			denied:   []string{podWeb + " > " + outside + ":80/TCP", podWorker + " > " + podWeb + ":80/TCP"},
		},
		{
			name:     "type Egress alone leaves ingress open",
			policies: policyIn(`{ podSelector: {}, policyTypes: [Egress] }`),
			allowed:  []string{podOther + " > " + podWeb + ":80/TCP"},
			denied:   []string{podWeb + " > " + podOther + ":80/TCP", podWeb + " > 10.244.0.1:6443/TCP"},
		},
		{
			name:     "an empty from admits everybody, on its ports only",
			policies: policyIn(`{ podSelector: {}, ingress: [{ ports: [{ port: 80 }] }] }`),
			allowed:  []string{podOther + " > " + podWeb + ":80/TCP", outside + " > " + podWeb + ":80/TCP"},
			denied:   []string{podOther + " > " + podWeb + ":81/TCP", podOther + " > " + podWeb + ":80/UDP"},
		},
		{
			name:     "a pod selector means the policy's namespace",
			policies: policyIn(`{ podSelector: {}, ingress: [{ from: [{ podSelector: { matchLabels: { app: web } } }] }] }`),
			allowed:  []string{podWeb + " > " + podWorker + ":80/TCP"},
			denied:   []string{podOther + " > " + podWorker + ":80/TCP"},
		},
		{
			name: "a namespace selector means all pods of it",
			policies: policyIn(
				`{ podSelector: {}, ingress: [{ from: [{ namespaceSelector: { matchLabels: { team: blue } } }] }] }`),
			allowed: []string{podOther + " > " + podWorker + ":80/TCP"},
			denied:  []string{podWeb + " > " + podWorker + ":80/TCP"},
		},
		{
			name: "both selectors in one peer must match, in two peers either",
			policies: policyIn(`{ podSelector: { matchLabels: { app: worker } }, ingress: [{ from: [
				{ namespaceSelector: {}, podSelector: { matchExpressions: [{ key: tier, operator: DoesNotExist }] } } ] }] }`),
			allowed: []string{podOther + " > " + podWorker + ":80/TCP", podWeb + " > " + podWorker + ":80/TCP"},
			denied:  []string{outside + " > " + podWorker + ":80/TCP"},
		},
		{
			name: "an address block admits what its exceptions leave",
			policies: policyIn(`{ podSelector: {}, policyTypes: [Egress], egress: [{ to: [
				{ ipBlock: { cidr: 198.51.100.0/24, except: [198.51.100.128/25, 198.51.100.200/32] } }] }] }`),
			allowed: []string{podWeb + " > " + outside + ":80/TCP"},
			denied:  []string{podWeb + " > 198.51.100.200:80/TCP", podWeb + " > 203.0.113.1:80/TCP"},
		},
		{
			name: "two policies admit what either does",
			policies: policyIn(`{ podSelector: {}, ingress: [{ ports: [{ port: 80 }] }] }`) + "---\n" +
				strings.Replace(policyIn(`{ podSelector: {}, ingress: [{ ports: [{ port: 90, endPort: 92 }] }] }`), "name: p", "name: q", 1),
			allowed: []string{podOther + " > " + podWeb + ":80/TCP", podOther + " > " + podWeb + ":92/TCP"},
			denied:  []string{podOther + " > " + podWeb + ":93/TCP"},
		},
		{
			name:     "a named port is the selected pod's own",
			policies: policyIn(`{ podSelector: {}, ingress: [{ ports: [{ port: http }] }] }`),
			allowed:  []string{podOther + " > " + podWeb + ":8080/TCP"},
			denied:   []string{podOther + " > " + podWorker + ":8080/TCP", podOther + " > " + podWeb + ":80/TCP"},
		},
		{
			name:     "rules with ports admit no other protocol",
			policies: policyIn(`{ podSelector: {}, ingress: [{ ports: [{ protocol: UDP }] }] }`),
			allowed:  []string{podOther + " > " + podWeb + ":5/UDP"},
			denied:   []string{podOther + " > " + podWeb + ":0/1", podOther + " > " + podWeb + ":5/SCTP"},
		},
	}
	for _, row := range cases {
		t.Run(row.name, func(t *testing.T) {
			text := twoNamespaces
			if row.policies != "" {
				text += "---\n" + row.policies
			}
			ruleset, problems := Compile(parseInput(t, []byte(text)), testNode)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			for _, text := range row.allowed {
				if !ruleset.Allows(flow(t, text)) {
					t.Errorf("%s is denied", text)
				}
			}
			for _, text := range row.denied {
				if ruleset.Allows(flow(t, text)) {
					t.Errorf("%s is allowed", text)
				}
			}
		})
	}
}

func TestNodeIsAlwaysAllowedIn(t *testing.T) {
	ruleset, _ := Compile(parseInput(t, []byte(twoNamespaces+"---\n"+policyIn(`{ podSelector: {} }`))), testNode)
	probe := flow(t, "10.244.0.1 > "+podWeb+":8080/TCP")
	probe.FromNode = true
	if !ruleset.Allows(probe) {
		t.Error("a probe is denied")
	}
}

func TestChangedNamesOnlyPodsTreatedInAnotherWay(t *testing.T) {
	compile := func(text string) *Ruleset {
		ruleset, _ := Compile(parseInput(t, []byte(text)), testNode)
		return ruleset
	}
	open := compile(twoNamespaces)
	isolated := compile(twoNamespaces + "---\n" + policyIn(`{ podSelector: { matchLabels: { app: web } } }`))
	ended := compile(strings.Replace(twoNamespaces, "phase: Running, podIP: 10.244.0.12", "phase: Failed, podIP: 10.244.0.12", 1))
	for name, row := range map[string]struct {
		before, after *Ruleset
		want          []string
	}{
		"nothing":   {open, open, nil},
		"first":     {nil, open, []string{podWeb, podWorker, podOther}},
		"a policy":  {open, isolated, []string{podWeb}},
		"its end":   {isolated, open, []string{podWeb}},
		"an ending": {open, ended, []string{podWorker}},
	} {
		changed := Changed(row.before, row.after)
		if len(changed) != len(row.want) {
			t.Errorf("%s: %v", name, changed)
		}
		for _, addr := range row.want {
			if !changed[netip.MustParseAddr(addr)] {
				t.Errorf("%s: %s is missing", name, addr)
			}
		}
	}
}

func TestWhatCannotBeUnderstoodAllowsNothing(t *testing.T) {
	for _, spec := range []string{
		`{ podSelector: {}, ingress: [{ from: [{ ipBlock: { cidr: nonsense } }] }] }`,
		`{ podSelector: {}, ingress: [{ from: [{ ipBlock: { cidr: 0.0.0.0/0, except: [nonsense] } }] }] }`,
		`{ podSelector: {}, ingress: [{ from: [{ podSelector: { matchExpressions: [{ key: a, operator: Like }] } }] }] }`,
		`{ podSelector: {}, ingress: [{ ports: [{ port: 80, protocol: ICMP }] }] }`,
		`{ podSelector: {}, ingress: [{ ports: [{ port: 90, endPort: 80 }] }] }`,
	} {
		ruleset, problems := Compile(parseInput(t, []byte(twoNamespaces+"---\n"+policyIn(spec))), testNode)
		if len(problems) == 0 {
			t.Errorf("no problem with %s", spec)
		}
		if ruleset.Allows(flow(t, podOther+" > "+podWeb+":80/TCP")) {
			t.Errorf("allowed by %s", spec)
		}
	}
}

// Where other nodes are real, their pods are peers like those of this one; else they are no pods at all.
func TestPodsOfOtherNodes(t *testing.T) {
	input := twoNamespaces + "---\n" + `apiVersion: v1
kind: Pod
metadata: { namespace: b, name: remote }
status: { phase: Running, hostIP: 10.89.0.3, podIP: 10.244.2.7 }
---
` + policyIn(`{ podSelector: { matchLabels: { app: web } }, ingress: [{ from: [{ namespaceSelector: { matchLabels: { team: blue } } }] }] }`)
	for _, real := range []bool{true, false} {
		node := testNode
		node.OtherNodes = real
		ruleset, problems := Compile(parseInput(t, []byte(input)), node)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		if got := ruleset.Allows(flow(t, "10.244.2.7 > "+podWeb+":80/TCP")); got != real {
			t.Errorf("real %v: allowed %v", real, got)
		}
		if got := strings.Contains(ruleset.Text(), "10.244.2.7"); got != real {
			t.Errorf("real %v: in the rules %v", real, got)
		}
	}
}
