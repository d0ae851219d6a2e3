package main

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// peers resolves `from` or `to` of a policy in the given namespace. An empty list means everybody.
func (c *compiler) peers(list []networkingv1.NetworkPolicyPeer, namespace, where string) peers {
	if len(list) == 0 {
		return peers{any: true}
	}
	var result peers
	for _, peer := range list {
		if peer.IPBlock != nil {
			if block, err := parseBlock(peer.IPBlock); err != nil {
				c.problems = append(c.problems, fmt.Errorf("%s: %w", where, err))
			} else {
				result.blocks = append(result.blocks, block)
			}
			continue
		}
		for _, candidates := range c.peerNamespaces(peer.NamespaceSelector, namespace, where) {
			selector := peer.PodSelector
			if selector == nil {
				selector = &metav1.LabelSelector{}
			}
			for _, endpoint := range c.selectPods(candidates, selector, where) {
				result.addrs = append(result.addrs, endpoint.addr)
			}
		}
	}
	slices.SortFunc(result.addrs, netip.Addr.Compare)
	result.addrs = slices.Compact(result.addrs)
	return result
}

// peerNamespaces returns the pods of each namespace that the selector matches; without one, the policy's own.
func (c *compiler) peerNamespaces(selector *metav1.LabelSelector, own, where string) [][]*endpoint {
	if selector == nil {
		return [][]*endpoint{c.byNS[own]}
	}
	matcher, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		c.problems = append(c.problems, fmt.Errorf("%s: namespace selector: %w", where, err))
		return nil
	}
	var matched [][]*endpoint
	for namespace, endpoints := range c.byNS {
		// A namespace that is not known (yet) has no labels that could match.
		if set, known := c.namespaces[namespace]; known && matcher.Matches(set) {
			matched = append(matched, endpoints)
		}
	}
	return matched
}

func parseBlock(ipBlock *networkingv1.IPBlock) (block, error) {
	cidr, err := netip.ParsePrefix(ipBlock.CIDR)
	if err != nil {
		return block{}, fmt.Errorf("ipBlock: %w", err)
	}
	result := block{cidr: cidr.Masked()}
	for _, text := range ipBlock.Except {
		except, err := netip.ParsePrefix(text)
		if err != nil {
			return block{}, fmt.Errorf("ipBlock except: %w", err)
		}
		result.except = append(result.except, except.Masked())
	}
	result.except = outermost(result.except)
	return result, nil
}

// outermost sorts prefixes and drops those inside another: nftables takes no overlapping ones in a set.
func outermost(prefixes []netip.Prefix) []netip.Prefix {
	slices.SortFunc(prefixes, func(a, b netip.Prefix) int {
		return cmp.Or(cmp.Compare(a.Bits(), b.Bits()), a.Addr().Compare(b.Addr()))
	})
	var result []netip.Prefix
	for _, prefix := range prefixes {
		if !slices.ContainsFunc(result, prefix.Overlaps) {
			result = append(result, prefix)
		}
	}
	slices.SortFunc(result, func(a, b netip.Prefix) int { return a.Addr().Compare(b.Addr()) })
	return result
}

// ports is the `ports` of a rule: every port, or fixed ranges and names.
type ports struct {
	every bool
	fixed []portRange
	named []namedPort
}

type namedPort struct {
	protocol corev1.Protocol
	name     string
}

func (c *compiler) ports(list []networkingv1.NetworkPolicyPort, where string) ports {
	result := ports{every: len(list) == 0}
	for _, port := range list {
		protocol := corev1.ProtocolTCP
		if port.Protocol != nil {
			protocol = *port.Protocol
		}
		switch {
		case protocol != corev1.ProtocolTCP && protocol != corev1.ProtocolUDP && protocol != corev1.ProtocolSCTP:
			c.problems = append(c.problems, fmt.Errorf("%s: unknown protocol %q", where, protocol))
		case port.Port == nil:
			result.fixed = append(result.fixed, portRange{protocol, 0, 65535})
		case port.Port.Type == intstr.String:
			result.named = append(result.named, namedPort{protocol, port.Port.StrVal})
		default:
			first, last := port.Port.IntVal, port.Port.IntVal
			if port.EndPort != nil {
				last = *port.EndPort
			}
			if first < 1 || last < first || last > 65535 {
				c.problems = append(c.problems, fmt.Errorf("%s: no port range: %d-%d", where, first, last))
				continue
			}
			result.fixed = append(result.fixed, portRange{protocol, uint16(first), uint16(last)})
		}
	}
	return result
}

// resolve returns the ports of that name and protocol that a pod's containers declare, sidecars included.
func (n namedPort) resolve(pod *corev1.Pod) []portRange {
	containers := slices.Clone(pod.Spec.Containers)
	for _, container := range pod.Spec.InitContainers {
		if container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			containers = append(containers, container)
		}
	}
	var found []portRange
	for _, container := range containers {
		for _, port := range container.Ports {
			protocol := cmp.Or(port.Protocol, corev1.ProtocolTCP)
			if port.Name == n.name && protocol == n.protocol {
				found = append(found, portRange{protocol, uint16(port.ContainerPort), uint16(port.ContainerPort)})
			}
		}
	}
	return found
}

// mergePorts sorts ranges by protocol and joins those that overlap or touch.
func mergePorts(ranges []portRange) []portRange {
	sorted := slices.Clone(ranges)
	slices.SortFunc(sorted, func(a, b portRange) int {
		return cmp.Or(cmp.Compare(a.protocol, b.protocol), cmp.Compare(a.first, b.first), cmp.Compare(a.last, b.last))
	})
	var merged []portRange
	for _, next := range sorted {
		if len(merged) > 0 {
			last := &merged[len(merged)-1]
			if last.protocol == next.protocol && int(next.first) <= int(last.last)+1 {
				last.last = max(last.last, next.last)
				continue
			}
		}
		merged = append(merged, next)
	}
	return merged
}
