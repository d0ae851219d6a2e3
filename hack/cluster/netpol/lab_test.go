package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/vishvananda/netns"
)

// lab is a small network of network namespaces: a node with a bridge and NAT like the cluster's, pods on the bridge,
// and a world behind the node. It touches nothing of the machine's own network, and goes when the test ends.
type lab struct {
	t        *testing.T
	enforcer *Enforcer
	input    *Input
}

var labNode = Node{
	Bridge: "slipwaytest0", PodCIDR: netip.MustParsePrefix("10.199.0.0/24"), IP: netip.MustParseAddr("10.199.0.1"),
	NodePorts: PortSpan{30000, 32767},
}

// labAddresses names everything a probe can start from or go to. What ends in -b is a second address of the same one.
// service, nodeport (on the node's address) and hostport (on its loopback) are translated to db's port 8080.
var labAddresses = map[string]string{
	"node": "10.199.0.1", "node-b": "198.51.100.1", "nodeport": "10.199.0.1", "hostport": "127.0.0.1", "dns": "10.199.0.2", "web": "10.199.0.11", "worker": "10.199.0.12", "db": "10.199.0.21",
	"client": "10.199.0.22", "stranger": "10.199.0.99", "world": "198.51.100.7", "world-b": "198.51.100.200",
	"service": "10.198.0.10",
}

// stranger has an address that no pod of the cluster is known to have.
var labPods = []string{"dns", "web", "worker", "db", "client", "stranger"}

const labObjects = `apiVersion: v1
kind: Namespace
metadata: { name: a, labels: { team: red } }
---
apiVersion: v1
kind: Namespace
metadata: { name: b, labels: { team: blue } }
---
apiVersion: v1
kind: Namespace
metadata: { name: kube-system, labels: { kubernetes.io/metadata.name: kube-system } }
---
apiVersion: v1
kind: Pod
metadata: { namespace: kube-system, name: dns, labels: { k8s-app: kube-dns } }
status: { phase: Running, podIP: 10.199.0.2 }
---
apiVersion: v1
kind: Pod
metadata: { namespace: a, name: web, labels: { app: web } }
status: { phase: Running, podIP: 10.199.0.11 }
---
apiVersion: v1
kind: Pod
metadata: { namespace: a, name: worker, labels: { app: worker } }
status: { phase: Running, podIP: 10.199.0.12 }
---
apiVersion: v1
kind: Pod
metadata: { namespace: b, name: db, labels: { app: db } }
spec: { containers: [{ name: app, ports: [{ name: main, containerPort: 8080 }] }] }
status: { phase: Running, podIP: 10.199.0.21 }
---
apiVersion: v1
kind: Pod
metadata: { namespace: b, name: client, labels: { app: web } }
status: { phase: Running, podIP: 10.199.0.22 }
`

// labNAT translates as kube-proxy does (node ports: for externalTrafficPolicy Local), and as the portmap plugin.
const labNAT = `table ip slipwaytest_nat {
	chain external {
		ip saddr 10.199.0.0/24 goto cluster
		fib saddr type local jump mark_masquerade
		goto cluster
	}
	chain cluster {
		ip saddr 10.199.0.21 jump mark_masquerade
		tcp dport 30080 dnat to 10.199.0.21:8080
		udp dport 30080 dnat to 10.199.0.21:8080
		tcp dport 30070 dnat to 10.199.0.21:7000
		tcp dport 30099 dnat to 10.199.0.99:8080
		tcp dport 30001 dnat to 10.199.0.1:8090
	}
	chain mark_masquerade {
		mark set mark or 0x4000
	}
	chain services {
		ip daddr 10.198.0.10 tcp dport 80 dnat to 10.199.0.21:8080
		ip daddr 10.199.0.1 th dport 30000-32767 goto external
		ip daddr 127.0.0.1 tcp dport 8070 dnat to 10.199.0.21:8080
	}
	chain prerouting {
		type nat hook prerouting priority dstnat; policy accept;
		jump services
	}
	chain output {
		type nat hook output priority -100; policy accept;
		jump services
	}
	chain postrouting {
		type nat hook postrouting priority srcnat; policy accept;
		ip saddr 10.199.0.21 ip daddr 10.199.0.21 masquerade
		ip saddr 127.0.0.1 oifname "slipwaytest0" masquerade
		mark and 0x4000 != 0 masquerade fully-random
	}
}
`

func namespaceOf(name string) string { return "slipwaytest-" + strings.TrimSuffix(name, "-b") }

// newLab builds the network, or skips with what is missing for it.
func newLab(t *testing.T) *lab {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to make network namespaces")
	}
	for _, tool := range []string{"ip", "nft"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs the command %s", tool)
		}
	}
	l := &lab{t: t, enforcer: NewEnforcer(labNode, linux{}, DefaultTiming), input: &Input{}}
	names := append([]string{"node", "world"}, labPods...)
	for _, name := range names {
		exec.Command("ip", "netns", "del", namespaceOf(name)).Run() // left by a run that was killed
	}
	t.Cleanup(func() {
		for _, name := range names {
			l.run("ip", "netns", "del", namespaceOf(name))
		}
	})
	for _, name := range names {
		l.run("ip", "netns", "add", namespaceOf(name))
		l.ip(name, "link set lo up")
	}
	l.ip("node", "link add slipwaytest0 type bridge")
	l.ip("node", "address add 10.199.0.1/24 dev slipwaytest0")
	l.ip("node", "link set slipwaytest0 up")
	for index, pod := range labPods {
		l.connect(pod, fmt.Sprintf("v%d", index), labAddresses[pod]+"/24", "10.199.0.1")
		l.ip("node", fmt.Sprintf("link set v%d master slipwaytest0", index))
		l.ip("node", fmt.Sprintf("link set v%d type bridge_slave hairpin on", index))
	}
	l.connect("world", "w0", "198.51.100.7/24", "198.51.100.1")
	l.ip("world", "address add 198.51.100.200/24 dev eth0")
	l.ip("node", "address add 198.51.100.1/24 dev w0")
	l.ip("node", "route add default via 198.51.100.7")
	l.in("node", func() error {
		for _, name := range []string{"ip_forward", "conf/slipwaytest0/route_localnet"} {
			if err := os.WriteFile("/proc/sys/net/ipv4/"+name, []byte("1"), 0o644); err != nil {
				return err
			}
		}
		return errors.Join(PrepareKernel(t.Context()), Apply(t.Context(), labNAT))
	})
	for _, name := range append([]string{"node", "world"}, labPods...) {
		for _, port := range []int{53, 80, 8080, 8085, 8090} {
			l.serve(name, port)
		}
	}
	return l
}

// connect links a namespace's eth0 with a device of the node.
func (l *lab) connect(name, device, address, gateway string) {
	l.ip("node", fmt.Sprintf("link add %s type veth peer name eth0 netns %s", device, namespaceOf(name)))
	l.ip("node", "link set "+device+" up")
	l.ip(name, "address add "+address+" dev eth0")
	l.ip(name, "link set eth0 up")
	l.ip(name, "route add default via "+gateway)
}

func (l *lab) ip(name, args string) {
	l.run("ip", append([]string{"-n", namespaceOf(name)}, strings.Fields(args)...)...)
}

func (l *lab) run(command string, args ...string) {
	if output, err := exec.Command(command, args...).CombinedOutput(); err != nil {
		l.t.Errorf("%s %s: %v: %s", command, strings.Join(args, " "), err, output)
	}
}

// in runs something on a thread of its own inside a network namespace; an error fails the test.
func (l *lab) in(name string, do func() error) {
	l.t.Helper()
	if err := inNamespace(name, do); err != nil {
		l.t.Fatalf("in %s: %v", name, err)
	}
}

func inNamespace(name string, do func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		handle, err := netns.GetFromName(namespaceOf(name))
		if err != nil {
			result <- err
			return
		}
		defer handle.Close()
		if err := netns.Set(handle); err != nil {
			result <- err
			return
		}
		result <- do()
	}()
	return <-result
}

// serve answers every TCP and UDP message on a port with the same bytes, over IPv4 and IPv6.
func (l *lab) serve(name string, port int) {
	address := fmt.Sprintf(":%d", port)
	l.in(name, func() error {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		packets, err := net.ListenPacket("udp", address)
		if err != nil {
			return err
		}
		l.t.Cleanup(func() { listener.Close(); packets.Close() })
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				go func() {
					defer conn.Close()
					io.Copy(conn, conn)
				}()
			}
		}()
		go echoPackets(packets)
		return nil
	})
}

func echoPackets(packets net.PacketConn) {
	buffer := make([]byte, 64)
	for {
		count, from, err := packets.ReadFrom(buffer)
		if err != nil {
			return
		}
		packets.WriteTo(buffer[:count], from)
	}
}
