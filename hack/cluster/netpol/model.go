package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// Table is the one nftables table (family inet) that this program owns.
const Table = "slipway_netpol"

// Node is what the rules need to know of the machine, all of whose pods hang on one bridge.
type Node struct {
	// Bridge is the interface that every pod is attached to.
	Bridge string
	// PodCIDR contains every pod's address, and the bridge's own.
	PodCIDR netip.Prefix
	// IP is the node's address as pods see it: the bridge's own, unless there are other nodes.
	IP netip.Addr
	// OtherNodes is whether pods of other nodes are real: their addresses are routed to, so policies mean them as peers.
	OtherNodes bool
	// NodePorts are the ports of Services on that address.
	NodePorts PortSpan
}

// PortSpan is first to last.
type PortSpan struct{ First, Last uint16 }

func (s PortSpan) contains(port uint16) bool { return port >= s.First && port <= s.Last }

func (s PortSpan) String() string { return fmt.Sprintf("%d-%d", s.First, s.Last) }

// PodRef names a pod as the CNI runtime does. UID is empty where the runtime does not hand it on.
type PodRef struct {
	Namespace, Name, UID string
}

// Input is a snapshot of the cluster. Attached has addresses given to pods whose status does not report them yet.
type Input struct {
	Policies   []*networkingv1.NetworkPolicy
	Pods       []*corev1.Pod
	Namespaces []*corev1.Namespace
	Attached   map[netip.Addr]PodRef
}

// Ruleset is what the policies mean for each pod address. It renders itself as nftables text (Text) and evaluates
// single connections (Allows), so that open ones can be checked against it.
type Ruleset struct {
	node      Node
	endpoints []*endpoint
	byAddr    map[netip.Addr]*endpoint
}

// endpoint is a pod's address. A nil isolation means that no policy selects the pod in that direction.
type endpoint struct {
	addr            netip.Addr
	pod             *corev1.Pod
	ingress, egress *isolation
}

func (e *endpoint) name() string { return e.pod.Namespace + "/" + e.pod.Name }

// isolation denies everything but what one of its rules allows.
type isolation struct {
	allows []*allow
}

// direction is "ingress" or "egress", seen from the pod that a policy selects.
type direction string

const (
	ingress direction = "ingress"
	egress  direction = "egress"
)

// allow admits connections with one of the peers (from them for ingress, to them for egress) on one of the ports.
type allow struct {
	peers peers
	// ports is nil for every protocol and port.
	ports []portRange
	// lines are its nftables rules, without any for peers that match nothing.
	lines []string
	chain string
}

// peers is a set of addresses.
type peers struct {
	any    bool
	addrs  []netip.Addr
	blocks []block
}

// block is a CIDR without some CIDRs inside it.
type block struct {
	cidr   netip.Prefix
	except []netip.Prefix
}

// portRange is first to last of a protocol; 0 to 65535 is all of it, which also covers what has no ports.
type portRange struct {
	protocol    corev1.Protocol
	first, last uint16
}

func (p portRange) wholeProtocol() bool { return p.first == 0 && p.last == 65535 }

func (p peers) contains(addr netip.Addr) bool {
	if p.any || slices.Contains(p.addrs, addr) {
		return true
	}
	return slices.ContainsFunc(p.blocks, func(b block) bool {
		excepted := func(except netip.Prefix) bool { return except.Contains(addr) }
		return b.cidr.Contains(addr) && !slices.ContainsFunc(b.except, excepted)
	})
}

// chainName names a chain by what is in it: equal chains are one, and equal input gives equal text.
func chainName(prefix string, lines []string) string {
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return prefix + "_" + hex.EncodeToString(sum[:6])
}

func newAllow(dir direction, who peers, ports []portRange) *allow {
	lines := allowLines(dir, who, ports)
	return &allow{peers: who, ports: ports, lines: lines, chain: chainName("allow_"+string(dir), lines)}
}

// key identifies an isolation: the names of its rules' chains, which are named by content. "open" for none.
func (i *isolation) key() string {
	if i == nil {
		return "open"
	}
	var names []string
	for _, allow := range i.allows {
		if len(allow.lines) > 0 {
			names = append(names, allow.chain)
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " ")
}
