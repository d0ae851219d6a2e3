package main

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// forbiddenFlows picks the connections of the changed addresses that the ruleset forbids. The rules let packets of
// open connections pass, so a policy reaches these only when the kernel forgets them.
type forbiddenFlows struct {
	ruleset *Ruleset
	changed map[netip.Addr]bool
	node    map[netip.Addr]bool
}

// CutForbidden deletes the connections of the changed addresses that the ruleset forbids, and returns how many.
func CutForbidden(ruleset *Ruleset, changed map[netip.Addr]bool) (int, error) {
	if len(changed) == 0 {
		return 0, nil
	}
	node, err := nodeAddresses()
	if err != nil {
		return 0, err
	}
	filter := &forbiddenFlows{ruleset, changed, node}
	deleted, err := netlink.ConntrackDeleteFilters(netlink.ConntrackTable, unix.AF_INET, filter)
	if err != nil {
		return int(deleted), fmt.Errorf("cutting connections: %w", err)
	}
	return int(deleted), nil
}

// MatchConntrackFlow selects the connections that netlink deletes. Address translation shows as a difference between
// the two directions: who really answers is the source of the replies.
func (f *forbiddenFlows) MatchConntrackFlow(flow *netlink.ConntrackFlow) bool {
	source, okSource := netip.AddrFromSlice(flow.Forward.SrcIP)
	destination, okDestination := netip.AddrFromSlice(flow.Reverse.SrcIP)
	if !okSource || !okDestination {
		return false
	}
	source, destination = source.Unmap(), destination.Unmap()
	if !f.changed[source] && !f.changed[destination] {
		return false
	}
	return !f.ruleset.Allows(Connection{
		Source:      source,
		Destination: destination,
		Protocol:    protocolName(flow.Forward.Protocol),
		Port:        flow.Reverse.SrcPort,
		FromNode:    (f.node[source] || source.IsLoopback()) && !f.throughNodePort(flow, destination),
	})
}

// throughNodePort reports whether a connection was opened to a node port and translated to another address.
func (f *forbiddenFlows) throughNodePort(flow *netlink.ConntrackFlow, answering netip.Addr) bool {
	called, ok := netip.AddrFromSlice(flow.Forward.DstIP)
	node := f.ruleset.node
	return ok && called.Unmap() == node.IP && answering != node.IP && node.NodePorts.contains(flow.Forward.DstPort)
}

func protocolName(number uint8) string {
	switch number {
	case unix.IPPROTO_TCP:
		return "TCP"
	case unix.IPPROTO_UDP:
		return "UDP"
	case unix.IPPROTO_SCTP:
		return "SCTP"
	}
	return fmt.Sprint(number)
}

func nodeAddresses() (map[netip.Addr]bool, error) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("reading the node's addresses: %w", err)
	}
	addresses := map[netip.Addr]bool{}
	for _, item := range list {
		if prefix, err := netip.ParsePrefix(item.String()); err == nil {
			addresses[prefix.Addr()] = true
		}
	}
	return addresses, nil
}
