package main

import (
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
)

// fullNode is as much as the one node takes: 400 pods of 100 organizations, each guarded, each project public.
func fullNode(b *testing.B) Input {
	var input Input
	addr := netip.MustParseAddr("10.244.0.1")
	for organization := range 100 {
		name := fmt.Sprintf("org-%d", organization)
		text := "kind: Namespace\nmetadata: { name: NAME, labels: { kubernetes.io/metadata.name: NAME } }\n"
		for _, spec := range []string{
			`{ podSelector: {}, policyTypes: [Ingress, Egress] }`,
			`{ podSelector: {}, policyTypes: [Ingress, Egress], ingress: [{ from: [{ podSelector: {} }] }], egress: [{ to: [{ podSelector: {} }] }] }`,
			`{ podSelector: {}, policyTypes: [Egress], egress: [{ to: [{ ipBlock: { cidr: 0.0.0.0/0, except: [10.0.0.0/8] } }] }] }`,
		} {
			text += "---\n" + strings.Replace(policyIn(spec), "namespace: a", "namespace: NAME", 1)
		}
		for project := range 4 {
			addr = addr.Next()
			text += fmt.Sprintf("---\nkind: Pod\nmetadata: { namespace: NAME, name: p%[1]d, labels: { project: p%[1]d } }\n"+
				"status: { phase: Running, podIP: %s }\n---\n", project, addr) + strings.Replace(policyIn(fmt.Sprintf(
				`{ podSelector: { matchLabels: { project: p%d } }, ingress: [{ from: [{ namespaceSelector: {
					matchLabels: { kubernetes.io/metadata.name: org-0 } } }], ports: [{ port: 8080 }] }] }`, project)),
				"namespace: a", "namespace: NAME", 1)
		}
		parsed := parseInput(b, []byte(strings.ReplaceAll(text, "NAME", name)))
		input.Namespaces = append(input.Namespaces, parsed.Namespaces...)
		input.Pods = append(input.Pods, parsed.Pods...)
		input.Policies = append(input.Policies, parsed.Policies...)
	}
	return input
}

func BenchmarkCompileAndRender(b *testing.B) {
	input := fullNode(b)
	var text string
	for b.Loop() {
		ruleset, _ := Compile(input, testNode)
		text = ruleset.Text()
	}
	b.ReportMetric(float64(len(text)), "bytes")
}

// BenchmarkLoad loads the full node's rules into the kernel, in a network namespace of its own.
func BenchmarkLoad(b *testing.B) {
	namespace := namespaceOf("bench")
	if output, err := exec.Command("ip", "netns", "add", namespace).CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, output)
	}
	b.Cleanup(func() { exec.Command("ip", "netns", "del", namespace).Run() })
	ruleset, _ := Compile(fullNode(b), testNode)
	text := ruleset.Text()
	for b.Loop() {
		if err := inNamespace("bench", func() error { return Apply(b.Context(), text) }); err != nil {
			b.Fatal(err)
		}
	}
}
