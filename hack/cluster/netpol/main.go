// Command netpol enforces NetworkPolicies on the one node of the embedded cluster, with nftables. See README.md.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type options struct {
	kubeconfig, podCIDR, nodeIP, nodePorts, bridge, health, cniCache string
	otherNodes, flush                                                bool
}

func main() {
	var o options
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig that may list and watch pods, namespaces, networkpolicies")
	flag.StringVar(&o.podCIDR, "pod-cidr", "10.244.0.0/22", "addresses of pods, the bridge's own among them")
	flag.StringVar(&o.nodeIP, "node-ip", "10.244.0.1", "the node's address as pods see it")
	flag.StringVar(&o.nodePorts, "node-ports", "30000-32767", "ports of Services on that address")
	flag.StringVar(&o.bridge, "bridge", "slipway0", "interface that all pods are attached to")
	flag.StringVar(&o.health, "health", "127.0.0.1:10290", "loopback address of /healthz; empty for none")
	flag.StringVar(&o.cniCache, "cni-cache", "/var/lib/cni/results", "folder where libcni keeps results; empty for none")
	flag.BoolVar(&o.otherNodes, "other-nodes", false, "pods of other nodes are real, and reached by routes")
	flag.BoolVar(&o.flush, "flush", false, "remove the rules and end")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "netpol:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if o.flush {
		return Flush(ctx)
	}
	node, err := parseNode(o)
	if err != nil {
		return err
	}
	if err := PrepareKernel(ctx); err != nil {
		return err
	}
	enforcer := NewEnforcer(node, linux{}, DefaultTiming)
	if err := enforcer.CloseIfBare(ctx); err != nil {
		return err
	}
	if o.health != "" {
		if err := serveHealth(ctx, o.health, enforcer.Status); err != nil {
			return err
		}
	}
	cluster, err := NewCluster(o.kubeconfig, o.cniCache, enforcer.Trigger)
	if err != nil {
		return err
	}
	if err := cluster.Start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	enforcer.Snapshot = cluster.Snapshot
	if o.cniCache != "" {
		if err := WatchAttachments(ctx, o.cniCache, enforcer.Trigger); err != nil {
			return fmt.Errorf("watching %s: %w", o.cniCache, err)
		}
	}
	enforcer.Run(ctx)
	slog.Info("ended; the rules stay in place")
	return nil
}

func parseNode(o options) (Node, error) {
	cidr, err := netip.ParsePrefix(o.podCIDR)
	if err != nil || !cidr.Addr().Is4() {
		return Node{}, fmt.Errorf("--pod-cidr %q is no IPv4 CIDR", o.podCIDR)
	}
	ip, err := netip.ParseAddr(o.nodeIP)
	if err != nil || !ip.Is4() {
		return Node{}, fmt.Errorf("--node-ip %q is no IPv4 address", o.nodeIP)
	}
	// The name becomes part of the rules' text.
	if !interfaceName(o.bridge) {
		return Node{}, fmt.Errorf("--bridge %q is no interface name", o.bridge)
	}
	ports, err := parseSpan(o.nodePorts)
	if err != nil {
		return Node{}, err
	}
	return Node{Bridge: o.bridge, PodCIDR: cidr.Masked(), IP: ip, OtherNodes: o.otherNodes, NodePorts: ports}, nil
}

// parseSpan reads "first-last".
func parseSpan(text string) (PortSpan, error) {
	low, high, _ := strings.Cut(text, "-")
	first, errFirst := strconv.ParseUint(low, 10, 16)
	last, errLast := strconv.ParseUint(high, 10, 16)
	if err := errors.Join(errFirst, errLast); err != nil || first == 0 || last < first {
		return PortSpan{}, fmt.Errorf("--node-ports %q is no range of ports", text)
	}
	return PortSpan{uint16(first), uint16(last)}, nil
}

func interfaceName(name string) bool {
	for _, char := range name {
		plain := char >= 'a' && char <= 'z' || char >= 'A' && char <= 'Z' || char >= '0' && char <= '9'
		if !plain && char != '-' && char != '_' && char != '.' {
			return false
		}
	}
	return len(name) > 0 && len(name) < 16
}

// serveHealth answers /healthz with the status: 200 when the rules are up to date, else 503.
func serveHealth(ctx context.Context, address string, status func() Status) error {
	addr, err := netip.ParseAddrPort(address)
	if err != nil || !addr.Addr().IsLoopback() {
		return fmt.Errorf("--health %q is no loopback address with a port", address)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(response http.ResponseWriter, _ *http.Request) {
		current := status()
		response.Header().Set("Content-Type", "application/json")
		if !current.Healthy {
			response.WriteHeader(http.StatusServiceUnavailable)
		}
		json.NewEncoder(response).Encode(current)
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { server.Close() })
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			slog.Error("health endpoint ended", "error", err)
		}
	}()
	return nil
}

// linux is the kernel this process runs on.
type linux struct{}

func (linux) Apply(ctx context.Context, text string) error { return Apply(ctx, text) }
func (linux) Exists(ctx context.Context) bool              { return Exists(ctx) }
func (linux) CutForbidden(ruleset *Ruleset, changed map[netip.Addr]bool) (int, error) {
	return CutForbidden(ruleset, changed)
}
