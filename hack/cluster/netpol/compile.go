package main

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// compiler keeps what is looked up again and again while policies are compiled.
type compiler struct {
	ruleset    *Ruleset
	byNS       map[string][]*endpoint
	namespaces map[string]labels.Set
	problems   []error
}

// Compile works out what the policies mean for each pod of the node. It is pure, and the order of its input does
// not matter. Problems are parts of policies that cannot be understood (the apiserver lets none through): such a
// part allows nothing.
func Compile(in Input, node Node) (*Ruleset, []error) {
	c := &compiler{
		ruleset:    &Ruleset{node: node, byAddr: map[netip.Addr]*endpoint{}},
		byNS:       map[string][]*endpoint{},
		namespaces: map[string]labels.Set{},
	}
	for _, namespace := range in.Namespaces {
		c.namespaces[namespace.Name] = namespace.Labels
	}
	c.addEndpoints(in)
	policies := slices.Clone(in.Policies)
	slices.SortFunc(policies, func(a, b *networkingv1.NetworkPolicy) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, policy := range policies {
		c.addPolicy(policy)
	}
	return c.ruleset, c.problems
}

// addEndpoints gives every address its pod. The status of a pod counts more than what the runtime wrote down, and
// of two pods that claim an address (the older is about to go) the newer has it.
func (c *compiler) addEndpoints(in Input) {
	pods := slices.Clone(in.Pods)
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(b.CreationTimestamp.Time.Compare(a.CreationTimestamp.Time),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	byName := map[string]*corev1.Pod{}
	for _, pod := range pods {
		if !c.enforceable(pod) {
			continue
		}
		byName[pod.Namespace+"/"+pod.Name] = pod
		for _, ip := range pod.Status.PodIPs {
			c.addEndpoint(ip.IP, pod)
		}
		c.addEndpoint(pod.Status.PodIP, pod)
	}
	for addr, ref := range in.Attached {
		pod := byName[ref.Namespace+"/"+ref.Name]
		if pod != nil && (ref.UID == "" || ref.UID == string(pod.UID)) {
			c.addEndpoint(addr.String(), pod)
		}
	}
	slices.SortFunc(c.ruleset.endpoints, func(a, b *endpoint) int { return a.addr.Compare(b.addr) })
	for _, endpoint := range c.ruleset.endpoints {
		c.byNS[endpoint.pod.Namespace] = append(c.byNS[endpoint.pod.Namespace], endpoint)
	}
}

// enforceable leaves out pods that have no address of their own, have ended, or run on another node that is simulated. Those
// of a real one are peers; rules for themselves do no harm, since their packets come from no bridge of this node.
func (c *compiler) enforceable(pod *corev1.Pod) bool {
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	node := c.ruleset.node
	elsewhere := !node.OtherNodes && pod.Status.HostIP != "" && pod.Status.HostIP != node.IP.String()
	return !pod.Spec.HostNetwork && !ended && !elsewhere
}

func (c *compiler) addEndpoint(ip string, pod *corev1.Pod) {
	addr, err := netip.ParseAddr(ip)
	node := c.ruleset.node
	if err != nil || !addr.Is4() || !node.PodCIDR.Contains(addr) || addr == node.IP {
		return
	}
	if _, taken := c.ruleset.byAddr[addr]; taken {
		return
	}
	endpoint := &endpoint{addr: addr, pod: pod}
	c.ruleset.byAddr[addr] = endpoint
	c.ruleset.endpoints = append(c.ruleset.endpoints, endpoint)
}

// addPolicy isolates the pods that a policy selects and adds what it allows to each of them.
func (c *compiler) addPolicy(policy *networkingv1.NetworkPolicy) {
	where := policy.Namespace + "/" + policy.Name
	selected := c.selectPods(c.byNS[policy.Namespace], &policy.Spec.PodSelector, where)
	isolatesIn, isolatesOut := policyTypes(policy)
	if isolatesIn {
		for _, pod := range selected {
			isolate(&pod.ingress)
		}
		for index, rule := range policy.Spec.Ingress {
			where := fmt.Sprintf("%s ingress[%d]", where, index)
			c.addIngress(selected, c.peers(rule.From, policy.Namespace, where), c.ports(rule.Ports, where))
		}
	}
	if isolatesOut {
		for _, pod := range selected {
			isolate(&pod.egress)
		}
		for index, rule := range policy.Spec.Egress {
			where := fmt.Sprintf("%s egress[%d]", where, index)
			c.addEgress(selected, c.peers(rule.To, policy.Namespace, where), c.ports(rule.Ports, where))
		}
	}
}

// policyTypes applies the API's default: ingress always, egress when there are egress rules.
func policyTypes(policy *networkingv1.NetworkPolicy) (isolatesIn, isolatesOut bool) {
	types := policy.Spec.PolicyTypes
	if len(types) == 0 {
		return true, len(policy.Spec.Egress) > 0
	}
	return slices.Contains(types, networkingv1.PolicyTypeIngress), slices.Contains(types, networkingv1.PolicyTypeEgress)
}

func isolate(isolated **isolation) {
	if *isolated == nil {
		*isolated = &isolation{}
	}
}

// addIngress allows the peers to reach the selected pods. A named port is looked up in each of these pods.
func (c *compiler) addIngress(selected []*endpoint, who peers, ports ports) {
	if len(ports.named) == 0 {
		shared := newAllow(ingress, who, mergePorts(ports.fixed))
		for _, pod := range selected {
			if ports.every || len(ports.fixed) > 0 {
				pod.ingress.allows = append(pod.ingress.allows, shared)
			}
		}
		return
	}
	for _, pod := range selected {
		ranges := slices.Clone(ports.fixed)
		for _, named := range ports.named {
			ranges = append(ranges, named.resolve(pod.pod)...)
		}
		if len(ranges) > 0 {
			pod.ingress.allows = append(pod.ingress.allows, newAllow(ingress, who, mergePorts(ranges)))
		}
	}
}

// addEgress allows the selected pods to reach the peers. A named port is looked up in each peer that is a pod;
// peers that are address blocks have no named ports.
func (c *compiler) addEgress(selected []*endpoint, who peers, ports ports) {
	var allows []*allow
	if ports.every {
		allows = append(allows, newAllow(egress, who, nil))
	}
	if len(ports.fixed) > 0 {
		allows = append(allows, newAllow(egress, who, mergePorts(ports.fixed)))
	}
	if len(ports.named) > 0 {
		byPort := map[portRange][]netip.Addr{}
		for _, peer := range c.ruleset.endpoints {
			if !who.any && !slices.Contains(who.addrs, peer.addr) {
				continue
			}
			for _, named := range ports.named {
				for _, port := range named.resolve(peer.pod) {
					byPort[port] = append(byPort[port], peer.addr)
				}
			}
		}
		for port, addrs := range byPort {
			allows = append(allows, newAllow(egress, peers{addrs: slices.Compact(addrs)}, []portRange{port}))
		}
	}
	for _, pod := range selected {
		pod.egress.allows = append(pod.egress.allows, allows...)
	}
}

// selectPods returns those of the candidates whose labels match.
func (c *compiler) selectPods(candidates []*endpoint, selector *metav1.LabelSelector, where string) []*endpoint {
	matcher, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		c.problems = append(c.problems, fmt.Errorf("%s: pod selector: %w", where, err))
		return nil
	}
	var selected []*endpoint
	for _, candidate := range candidates {
		if matcher.Matches(labels.Set(candidate.pod.Labels)) {
			selected = append(selected, candidate)
		}
	}
	return selected
}
