package main

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// enforce loads the rules of the lab's pods under these policies, as the enforcer does after a change.
func (l *lab) enforce(policies ...string) {
	l.t.Helper()
	text := labObjects
	for index, policy := range policies {
		text += "---\n" + strings.Replace(policy, "name: p", fmt.Sprintf("name: p%d", index), 1)
	}
	*l.input = parseInput(l.t, []byte(text))
	l.enforcer.Snapshot = func() (Input, error) { return *l.input, nil }
	l.in("node", func() error { return l.enforcer.reconcile(l.t.Context()) })
}

// expect tries every connection, written "from > to:port/network", for real, and compares the result with Allows too.
func (l *lab) expect(want bool, probes ...string) {
	l.t.Helper()
	var group sync.WaitGroup
	for _, probe := range probes {
		from, rest, _ := strings.Cut(probe, " > ")
		target, network, _ := strings.Cut(rest, "/")
		to, port, _ := strings.Cut(target, ":")
		group.Add(1)
		go func() {
			defer group.Done()
			conn, err := dial(from, network, net.JoinHostPort(labAddresses[to], port))
			got := err == nil && echo(conn)
			if err == nil {
				conn.Close()
			}
			if got != want {
				l.t.Errorf("%s: passed %v, want %v (%v)", probe, got, want, err)
			}
		}()
		answering := netip.MustParseAddrPort(labAddresses[to] + ":" + port)
		if translated, ok := labTranslations[to+":"+port]; ok {
			answering = netip.MustParseAddrPort(translated)
		}
		allowed := l.enforcer.current.Allows(Connection{
			Source: netip.MustParseAddr(labAddresses[from]), Destination: answering.Addr(), Port: answering.Port(),
			Protocol: network, FromNode: namespaceOf(from) == namespaceOf("node") && to != "nodeport",
		})
		if allowed != want {
			l.t.Errorf("%s: allowed %v, want %v", probe, allowed, want)
		}
	}
	group.Wait()
}

// labTranslations maps the address that is called to the one that answers.
var labTranslations = map[string]string{
	"service:80": "10.199.0.21:8080", "hostport:8070": "10.199.0.21:8080", "nodeport:30080": "10.199.0.21:8080",
	"nodeport:30099": "10.199.0.99:8080", "nodeport:30001": "10.199.0.1:8090",
}

// dial opens a connection from a namespace, from its second address where the name ends with -b; echo reports whether a
// message comes back.
func dial(from, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: patience}
	if second := net.ParseIP(labAddresses[from]); strings.HasSuffix(from, "-b") {
		dialer.LocalAddr = &net.TCPAddr{IP: second}
		if network == "udp" {
			dialer.LocalAddr = &net.UDPAddr{IP: second}
		}
	}
	var conn net.Conn
	err := inNamespace(from, func() (err error) {
		conn, err = dialer.Dial(network, address)
		return err
	})
	return conn, err
}

// patience is how long an answer may take before it counts as none. On the lab's links it takes well under 1 ms.
const patience = 400 * time.Millisecond

func echo(conn net.Conn) bool {
	conn.SetDeadline(time.Now().Add(patience))
	if _, err := conn.Write([]byte("ping")); err != nil {
		return false
	}
	_, err := io.ReadFull(conn, make([]byte, 4))
	return err == nil
}
