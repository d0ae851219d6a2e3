package main

import (
	"net/netip"
	"slices"
	"strings"
)

// Connection is one flow after address translation: who opened it, and who really answers.
type Connection struct {
	Source, Destination netip.Addr
	// Protocol is "TCP", "UDP", "SCTP" or anything else, which only rules without ports allow.
	Protocol string
	// Port is the destination's; 0 where the protocol has none.
	Port uint16
	// FromNode is true when a process of the node opened it (kubelet's probes, host ports, Services' own addresses), and
	// not through a node port: always allowed, as Kubernetes has it.
	FromNode bool
}

// Allows reports whether the rules let a new connection like this one pass. It decides as the nftables text does.
func (r *Ruleset) Allows(connection Connection) bool {
	source, destination := connection.Source, connection.Destination
	if connection.FromNode || source == destination {
		return true
	}
	if r.isPodAddress(source) {
		sender := r.byAddr[source]
		if sender == nil || !sender.egress.admits(destination, connection) {
			return false
		}
	}
	if r.isPodAddress(destination) {
		receiver := r.byAddr[destination]
		return receiver != nil && receiver.ingress.admits(source, connection)
	}
	return true
}

func (r *Ruleset) isPodAddress(addr netip.Addr) bool {
	return r.node.PodCIDR.Contains(addr) && addr != r.node.IP
}

func (i *isolation) admits(peer netip.Addr, connection Connection) bool {
	if i == nil {
		return true
	}
	return slices.ContainsFunc(i.allows, func(allow *allow) bool {
		return allow.peers.contains(peer) && allow.admitsPort(connection)
	})
}

func (a *allow) admitsPort(connection Connection) bool {
	if a.ports == nil {
		return true
	}
	return slices.ContainsFunc(a.ports, func(port portRange) bool {
		return string(port.protocol) == strings.ToUpper(connection.Protocol) &&
			connection.Port >= port.first && connection.Port <= port.last
	})
}

// Changed returns the pod addresses that next treats in another way than previous did, those that went included.
// Without a previous ruleset these are all.
func Changed(previous, next *Ruleset) map[netip.Addr]bool {
	changed := map[netip.Addr]bool{}
	if previous == nil {
		previous = &Ruleset{}
	}
	for _, endpoint := range next.endpoints {
		before := previous.byAddr[endpoint.addr]
		if before == nil || before.pod.UID != endpoint.pod.UID || before.name() != endpoint.name() ||
			before.ingress.key() != endpoint.ingress.key() || before.egress.key() != endpoint.egress.key() {
			changed[endpoint.addr] = true
		}
	}
	for _, endpoint := range previous.endpoints {
		if next.byAddr[endpoint.addr] == nil {
			changed[endpoint.addr] = true
		}
	}
	return changed
}
