package main

import (
	"net"
	"net/netip"
	"strings"
	"time"
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
	// What was cut does not come back from the other side, whose packets the policies would let pass.
	time.Sleep(patience)
	if echo(open["web > db:80/tcp"]) {
		l.t.Error("a cut connection came back")
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
