package main

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Elements' comments are cut: the kernel keeps at most 128 bytes of them.
const maxComment = 120

// base is the part of the table that never changes. Egress of the sending pod is evaluated first, ingress of the
// receiving one in a later hook, since a verdict ends only its own hook. A source or destination on the bridge that
// is no pod we know, and all of IPv6 (pods have link-local addresses), is dropped. Of what the node's own processes
// send, only what went to a node port is evaluated: "ct original" is what they called, before its translation, which is
// done in this hook, so that its "oifname" is still the loopback device's.
const base = `	chain egress_forward {
		type filter hook forward priority filter; policy accept;
		iifname != "%[1]s" accept
		jump egress_pods
	}
	chain egress_input {
		type filter hook input priority filter; policy accept;
		iifname != "%[1]s" accept
		jump egress_pods
	}
	chain egress_pods {
		ct state established,related accept
		ct state new tcp flags & (fin | syn | rst | ack) != syn drop
		ip saddr . ip daddr @self accept
		ip saddr vmap @egress
		drop
	}
	chain ingress_forward {
		type filter hook forward priority filter + 1; policy accept;
		oifname != "%[1]s" accept
		ct state established,related accept
		ct state new tcp flags & (fin | syn | rst | ack) != syn drop
		ip saddr . ip daddr @self accept
		ip daddr vmap @ingress
		drop
	}
	chain ingress_output {
		type filter hook output priority filter + 1; policy accept;
		ct status dnat ct original ip daddr %[2]s meta l4proto { tcp, udp, sctp } ct original proto-dst %[3]s jump ingress_node_ports
	}
	chain ingress_node_ports {
		ct state established,related accept
		ct state new tcp flags & (fin | syn | rst | ack) != syn drop
		ip daddr vmap @ingress
		ip daddr %[2]s accept
		ip daddr %[4]s drop
	}
`

// Text renders the ruleset as one nftables transaction that replaces the table as a whole.
func (r *Ruleset) Text() string {
	chains := map[string][]string{}
	var egressMap, ingressMap, self []string
	for _, endpoint := range r.endpoints {
		egressMap = append(egressMap, element(endpoint, addChains(chains, egress, endpoint.egress)))
		ingressMap = append(ingressMap, element(endpoint, addChains(chains, ingress, endpoint.ingress)))
		self = append(self, fmt.Sprintf("%[1]s . %[1]s", endpoint.addr))
	}
	var text strings.Builder
	fmt.Fprintf(&text, "table inet %[1]s\ndelete table inet %[1]s\ntable inet %[1]s {\n", Table)
	writeSet(&text, "map egress", "ipv4_addr : verdict", egressMap)
	writeSet(&text, "map ingress", "ipv4_addr : verdict", ingressMap)
	writeSet(&text, "set self", "ipv4_addr . ipv4_addr", self)
	fmt.Fprintf(&text, base, r.node.Bridge, r.node.IP, r.node.NodePorts, r.node.PodCIDR)
	names := make([]string, 0, len(chains))
	for name := range chains {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&text, "\tchain %s {\n\t\t%s\n\t}\n", name, strings.Join(chains[name], "\n\t\t"))
	}
	text.WriteString("}\n")
	return text.String()
}

// addChains adds the chains of an isolation's pods, and returns the verdict that leads there.
func addChains(chains map[string][]string, dir direction, isolated *isolation) string {
	if isolated == nil {
		return "accept"
	}
	var lines []string
	for _, allow := range isolated.allows {
		if len(allow.lines) > 0 {
			chains[allow.chain] = allow.lines
			lines = append(lines, "jump "+allow.chain)
		}
	}
	slices.Sort(lines)
	lines = append(slices.Compact(lines), "drop")
	name := chainName(string(dir), lines)
	chains[name] = lines
	return "goto " + name
}

func element(endpoint *endpoint, verdict string) string {
	name := endpoint.name()
	return fmt.Sprintf("%s comment %q : %s", endpoint.addr, name[:min(len(name), maxComment)], verdict)
}

func writeSet(text *strings.Builder, name, typ string, elements []string) {
	fmt.Fprintf(text, "\t%s {\n\t\ttype %s\n", name, typ)
	if len(elements) > 0 {
		fmt.Fprintf(text, "\t\telements = {\n\t\t\t%s\n\t\t}\n", strings.Join(elements, ",\n\t\t\t"))
	}
	text.WriteString("\t}\n")
}

// allowLines renders one rule of a policy: each way to be a peer with each way to be a port.
func allowLines(dir direction, who peers, ports []portRange) []string {
	var lines []string
	for _, peer := range peerMatches(dir, who) {
		for _, port := range portMatches(ports) {
			lines = append(lines, strings.TrimSpace(peer+" "+port)+" accept")
		}
	}
	for index, line := range lines {
		lines[index] = strings.TrimSpace(line)
	}
	return lines
}

func peerMatches(dir direction, who peers) []string {
	if who.any {
		return []string{""}
	}
	field := "saddr"
	if dir == egress {
		field = "daddr"
	}
	var matches []string
	if len(who.addrs) > 0 {
		matches = append(matches, fmt.Sprintf("ip %s %s", field, anonymousSet(who.addrs, netip.Addr.String)))
	}
	for _, block := range who.blocks {
		family := "ip"
		if block.cidr.Addr().Is6() {
			family = "ip6"
		}
		match := fmt.Sprintf("%s %s %s", family, field, block.cidr)
		if len(block.except) > 0 {
			match += fmt.Sprintf(" %s %s != %s", family, field, anonymousSet(block.except, netip.Prefix.String))
		}
		matches = append(matches, match)
	}
	return matches
}

func portMatches(ports []portRange) []string {
	if ports == nil {
		return []string{""}
	}
	var matches []string
	for _, protocol := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP} {
		var ranges []portRange
		for _, port := range ports {
			if port.protocol == protocol {
				ranges = append(ranges, port)
			}
		}
		name := strings.ToLower(string(protocol))
		switch {
		case len(ranges) == 0:
		case ranges[0].wholeProtocol():
			matches = append(matches, "meta l4proto "+name)
		default:
			matches = append(matches, fmt.Sprintf("%s dport %s", name, anonymousSet(ranges, portText)))
		}
	}
	return matches
}

func portText(port portRange) string {
	if port.first == port.last {
		return fmt.Sprint(port.first)
	}
	return fmt.Sprintf("%d-%d", port.first, port.last)
}

func anonymousSet[T any](items []T, text func(T) string) string {
	texts := make([]string, len(items))
	for index, item := range items {
		texts[index] = text(item)
	}
	return "{ " + strings.Join(texts, ", ") + " }"
}
