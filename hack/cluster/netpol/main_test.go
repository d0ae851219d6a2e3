package main

import (
	"strings"
	"testing"
)

func TestOptions(t *testing.T) {
	good := options{podCIDR: "10.244.0.7/22", nodeIP: "10.244.0.1", nodePorts: "30000-32767", bridge: "slipway0"}
	if node, err := parseNode(good); err != nil || node != testNode {
		t.Errorf("%v, %v", node, err)
	}
	for wrong, change := range map[string]func(*options){
		"--pod-cidr":   func(o *options) { o.podCIDR = "fd00::/64" },
		"--node-ip":    func(o *options) { o.nodeIP = "node" },
		"--bridge":     func(o *options) { o.bridge = `"; drop` },
		"--node-ports": func(o *options) { o.nodePorts = "32767-30000" },
	} {
		bad := good
		change(&bad)
		if _, err := parseNode(bad); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
	for _, text := range []string{"", "30000", "0-5", "1-65536", "1-2-3", "a-b"} {
		if _, err := parseSpan(text); err == nil {
			t.Errorf("%q is a range", text)
		}
	}
}
