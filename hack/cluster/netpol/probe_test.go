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

// expect tries every connection, written "from > to:port/network", for real, and holds the judge against it too.
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
		if to == "service" {
			answering = netip.AddrPortFrom(netip.MustParseAddr(labAddresses["db"]), 8080)
		}
		judged := l.enforcer.current.Allows(Connection{
			Source: netip.MustParseAddr(labAddresses[from]), Destination: answering.Addr(), Port: answering.Port(),
			Protocol: network, FromNode: from == "node",
		})
		if judged != want {
			l.t.Errorf("%s: judged %v, want %v", probe, judged, want)
		}
	}
	group.Wait()
}

// dial opens a connection from a namespace; echo tells whether a message comes back.
func dial(from, network, address string) (net.Conn, error) {
	var conn net.Conn
	err := inNamespace(from, func() (err error) {
		conn, err = net.DialTimeout(network, address, patience)
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
