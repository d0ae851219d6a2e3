package main

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
)

func testOpenConnections(l *lab) {
	l.enforce()
	open := map[string]net.Conn{}
	for _, probe := range []string{"web > db:80/tcp", "client > db:80/tcp", "web > service:80/tcp", "web > db:53/udp",
		"client > db:53/udp", "node > db:80/tcp", "db > web:80/tcp"} {
		from, rest, _ := strings.Cut(probe, " > ")
		target, network, _ := strings.Cut(rest, "/")
		to, port, _ := strings.Cut(target, ":")
		conn, err := dial(from, network, labAddresses[to]+":"+port)
		if err != nil || !echo(conn) {
			l.t.Fatalf("%s does not open: %v", probe, err)
		}
		defer conn.Close()
		open[probe] = conn
	}
	l.enforce(in("b", `{ podSelector: { matchLabels: { app: db } }, ingress: [{ from: [{ podSelector: {} }] }] }`))
	for probe, conn := range open {
		cut := strings.HasPrefix(probe, "web > ")
		if alive := echo(conn); alive == cut {
			l.t.Errorf("%s: alive %v after the policy", probe, alive)
		}
	}
}

// testCutStaysCut has the other end continue to send, whose packets the policies would let pass in a connection that it
// opens itself: the kernel must not take the old one for such a connection.
func testCutStaysCut(l *lab) {
	l.enforce()
	var listener net.Listener
	l.in("db", func() (err error) {
		listener, err = net.Listen("tcp", ":7000")
		return err
	})
	defer listener.Close()
	conn, err := dial("web", "tcp", labAddresses["db"]+":7000")
	if err != nil {
		l.t.Fatal(err)
	}
	defer conn.Close()
	server, err := listener.Accept()
	if err != nil {
		l.t.Fatal(err)
	}
	defer server.Close()
	l.enforce(in("a", `{ podSelector: {}, policyTypes: [Egress] }`))
	l.expect(true, "db > web:80/tcp")
	if _, err := server.Write([]byte("push")); err != nil {
		l.t.Fatal(err)
	}
	conn.SetReadDeadline(time.Now().Add(patience))
	if _, err := conn.Read(make([]byte, 4)); err == nil {
		l.t.Error("the cut connection still delivers")
	}
}

// testOpenNodePorts blacklists the node: its connection through the node port ends, those past it and of others do not.
func testOpenNodePorts(l *lab) {
	l.enforce()
	open := map[string]net.Conn{}
	for _, probe := range []string{"node nodeport:30080", "node service:80", "node hostport:8070", "world nodeport:30080"} {
		from, target, _ := strings.Cut(probe, " ")
		to, port, _ := strings.Cut(target, ":")
		conn, err := dial(from, "tcp", labAddresses[to]+":"+port)
		if err != nil || !echo(conn) {
			l.t.Fatalf("%s does not open: %v", probe, err)
		}
		defer conn.Close()
		open[probe] = conn
	}
	l.enforce(in("b", `{ podSelector: {}, ingress: [{ from: [{ ipBlock: { cidr: 0.0.0.0/0, except: [10.199.0.1/32] } }] }] }`))
	for probe, conn := range open {
		if alive := echo(conn); alive == (probe == "node nodeport:30080") {
			l.t.Errorf("%s: alive %v after the policy", probe, alive)
		}
	}
}

// testNodePortClients queries the pod itself for the client address that it sees: policies apply to that address.
func testNodePortClients(l *lab) {
	l.enforce()
	var listener net.Listener
	l.in("db", func() (err error) {
		listener, err = net.Listen("tcp", ":7000")
		return err
	})
	defer listener.Close()
	for from, seen := range map[string]string{
		"world": "198.51.100.7", "world-b": "198.51.100.200", "node": "10.199.0.1", "client": "10.199.0.22",
		// Evaluated by its own address, but kube-proxy has its answers come back by the node's.
		"node-b": "10.199.0.1",
	} {
		conn, err := dial(from, "tcp", labAddresses["nodeport"]+":30070")
		if err != nil {
			l.t.Errorf("%s: %v", from, err)
			continue
		}
		defer conn.Close()
		server, err := listener.Accept()
		if err != nil {
			l.t.Fatal(err)
		}
		defer server.Close()
		if got := server.RemoteAddr().(*net.TCPAddr).IP.String(); got != seen {
			l.t.Errorf("%s is seen as %s, want %s", from, got, seen)
		}
	}
}

func TestForbiddenFlows(t *testing.T) {
	guarded := twoNamespaces + "---\n" + policyIn(`{ podSelector: { matchLabels: { app: web } } }`)
	ruleset, _ := Compile(parseInput(t, []byte(guarded)), testNode)
	web, node := netip.MustParseAddr(podWeb), netip.MustParseAddr("10.244.0.1")
	filter := &forbiddenFlows{ruleset, map[netip.Addr]bool{web: true}, map[netip.Addr]bool{node: true}}
	for _, row := range []struct {
		name, source, called, answers string
		port                          uint16
		forbidden                     bool
	}{
		{"to the guarded pod", podOther, podWeb, podWeb, 80, true},
		{"through a Service", podOther, "10.96.3.4", podWeb, 80, true},
		{"from outside", outside, podWeb, podWeb, 80, true},
		{"from the guarded pod, whose egress is open", podWeb, outside, outside, 80, false},
		{"from the node", "10.244.0.1", podWeb, podWeb, 80, false},
		{"from the node's loopback, through a host port", "127.0.0.1", "127.0.0.1", podWeb, 80, false},
		{"from the node, through a node port", "10.244.0.1", "10.244.0.1", podWeb, 30080, true},
		{"from the node, through a Service on a port like that", "10.244.0.1", "10.96.3.4", podWeb, 30080, false},
		{"from the node, through a port below", "10.244.0.1", "10.244.0.1", podWeb, 29999, false},
		{"of pods that did not change", unknown, podOther, podOther, 80, false},
	} {
		flow := &netlink.ConntrackFlow{
			Forward: netlink.IPTuple{
				SrcIP: net.ParseIP(row.source), DstIP: net.ParseIP(row.called), Protocol: 6, SrcPort: 40000, DstPort: row.port,
			},
			Reverse: netlink.IPTuple{
				SrcIP: net.ParseIP(row.answers), DstIP: net.ParseIP(row.source), Protocol: 6, SrcPort: 8080, DstPort: 40000,
			},
		}
		if got := filter.MatchConntrackFlow(flow); got != row.forbidden {
			t.Errorf("%s: forbidden %v", row.name, got)
		}
	}
}

// testNoGap sends without pause what is denied, while the rules are replaced again and again.
func testNoGap(l *lab) {
	l.enforce(in("a", denyAll))
	sender, err := dial("client", "udp", labAddresses["web"]+":80")
	if err != nil {
		l.t.Fatal(err)
	}
	stop := make(chan struct{})
	sent := make(chan int)
	go func() {
		count := 0
		for {
			select {
			case <-stop:
				sent <- count
				return
			default:
				sender.Write([]byte("ping"))
				count++
			}
		}
	}()
	for range 25 {
		l.enforce(in("a", denyAll), in("b", `{ podSelector: {} }`))
		l.enforce(in("a", denyAll))
	}
	close(stop)
	count := <-sent
	sender.SetReadDeadline(time.Now().Add(patience))
	if _, err := sender.Read(make([]byte, 4)); err == nil {
		l.t.Errorf("an answer came to one of %d denied packets", count)
	}
	if count < 1000 {
		l.t.Errorf("only %d packets were sent", count)
	}
}

// testFlush removes the rules twice (the second time there are none), then starts as after the machine's own start.
func testFlush(l *lab) {
	reach := func() bool {
		conn, err := dial("client", "tcp", labAddresses["web"]+":80")
		return err == nil && echo(conn)
	}
	l.in("node", func() error {
		err := errors.Join(Flush(l.t.Context()), Flush(l.t.Context()))
		if Exists(l.t.Context()) {
			l.t.Error("the table is still there")
		}
		return err
	})
	if !reach() {
		l.t.Error("closed without rules")
	}
	l.in("node", func() error { return l.enforcer.CloseIfBare(l.t.Context()) })
	if reach() {
		l.t.Error("open before the cluster was read")
	}
}

// testIPv6 tries the link-local addresses that the kernel gives pods: reachable without rules, not with them.
func testIPv6(l *lab) {
	target := "[" + l.linkLocal("web") + "%eth0]:80"
	reach := func() bool {
		conn, err := dial("client", "tcp6", target)
		return err == nil && echo(conn)
	}
	l.in("node", func() error { return Flush(l.t.Context()) })
	if !reach() {
		l.t.Fatalf("%s is not reachable without rules", target)
	}
	l.enforcer.text = ""
	l.enforce()
	if reach() {
		l.t.Errorf("%s is reachable past the rules", target)
	}
}

// linkLocal returns a pod's own IPv6 address.
func (l *lab) linkLocal(name string) (found string) {
	l.in(name, func() error {
		device, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		addresses, err := device.Addrs()
		for _, address := range addresses {
			if prefix, err := netip.ParsePrefix(address.String()); err == nil && prefix.Addr().IsLinkLocalUnicast() {
				found = prefix.Addr().String()
			}
		}
		return err
	})
	return found
}
