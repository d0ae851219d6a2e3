package main

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// As libcni 1.x of containerd 1.6 writes it, shortened.
const attachment = `{"kind":"cniCacheV1","containerId":"0057","config":"e30=","ifName":"eth0","networkName":"slipway",
"cniArgs":[["IgnoreUnknown","1"],["K8S_POD_NAMESPACE","a"],["K8S_POD_NAME","web"],["K8S_POD_UID","u1"]],
"result":{"cniVersion":"1.0.0","ips":[{"address":"10.244.0.11/22","gateway":"10.244.0.1","interface":2}]}}`

const loopback = `{"kind":"cniCacheV1","cniArgs":[["K8S_POD_NAMESPACE","a"],["K8S_POD_NAME","web"]],"result":{"ips":null}}`

func TestAttachedAddresses(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"slipway-0057-eth0": attachment, "cni-loopback-0057-lo": loopback, "half-written": attachment[:100],
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	attached := AttachedAddresses(dir)
	want := PodRef{Namespace: "a", Name: "web", UID: "u1"}
	if len(attached) != 1 || attached[netip.MustParseAddr(podWeb)] != want {
		t.Errorf("attached %v", attached)
	}
}

func TestWatchAttachmentsReportsNewFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results")
	reported := make(chan struct{}, 16)
	if err := WatchAttachments(t.Context(), dir, func() { reported <- struct{}{} }); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "slipway-0057-eth0"), []byte(attachment), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	select {
	case <-reported:
	case <-ctx.Done():
		t.Error("not reported")
	}
}

// The window between a pod's first packet and its status: its labels are known, its address comes from the runtime.
func TestAttachedAddressCountsBeforeStatus(t *testing.T) {
	input := parseInput(t, []byte(twoNamespaces+"---\n"+policyIn(`{ podSelector: { matchLabels: { app: web } } }`)))
	web := input.Pods[0]
	web.UID, web.Status.PodIP = "u1", ""
	incoming := flow(t, podOther+" > "+podWeb+":80/TCP")
	outgoing := flow(t, podWeb+" > "+outside+":80/TCP")
	for name, row := range map[string]struct {
		attached        PodRef
		incoming, leave bool
	}{
		"its own":                      {PodRef{"a", "web", "u1"}, false, true},
		"without uid":                  {PodRef{"a", "web", ""}, false, true},
		"an earlier pod's of its name": {PodRef{"a", "web", "u0"}, false, false},
		"an unknown pod":               {PodRef{"c", "web", "u1"}, false, false},
	} {
		input.Attached = map[netip.Addr]PodRef{netip.MustParseAddr(podWeb): row.attached}
		ruleset, _ := Compile(input, testNode)
		if got := ruleset.Allows(incoming); got != row.incoming {
			t.Errorf("%s: incoming %v", name, got)
		}
		if got := ruleset.Allows(outgoing); got != row.leave {
			t.Errorf("%s: outgoing %v", name, got)
		}
	}
	// A status that names the address wins over a file that was left behind.
	input.Attached = map[netip.Addr]PodRef{netip.MustParseAddr(podOther): {"a", "web", "u1"}}
	ruleset, _ := Compile(input, testNode)
	if name := ruleset.byAddr[netip.MustParseAddr(podOther)].name(); name != "b/other" {
		t.Errorf("%s belongs to %s", podOther, name)
	}
}
