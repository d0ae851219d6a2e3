// Command volumes provisions the volumes of the embedded cluster on the machine's disk, and grows those whose claims request
// more. See README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

type options struct{ kubeconfig, provisioner, folder, node, health string }

func main() {
	var o options
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of an account that may provision and resize volumes")
	flag.StringVar(&o.provisioner, "provisioner", "rancher.io/local-path", "its name in storage classes")
	flag.StringVar(&o.folder, "folder", "", "where they are")
	flag.StringVar(&o.node, "node", "", "its node's name, which is its host name too: only volumes of that node; empty for all")
	flag.StringVar(&o.health, "health", "127.0.0.1:10291", "loopback address of /healthz; empty for none")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "volumes:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	disk := Disk{Folder: filepath.Clean(o.folder)}
	why := Bounded()
	if why != nil {
		slog.Warn("volumes are plain folders: sizes are not enforced", "reason", why)
	}
	// Before anything else: pods that start find their data.
	if err := disk.MountAll(ctx); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	config.UserAgent = "slipway-volumes"
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	grow := func(ctx context.Context, volume *corev1.PersistentVolume, bytes int64) error {
		name, ok := disk.NameOf(volume)
		if !ok {
			return nil
		}
		return disk.Grow(ctx, name, bytes)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	resizer, err := NewResizer(client, factory, o.provisioner, o.node, grow)
	if err != nil {
		return err
	}
	if o.health != "" {
		if err := serveHealth(ctx, o.health, resizer.Synced); err != nil {
			return err
		}
	}
	slog.Info("started", "folder", disk.Folder, "bounded", why == nil)
	provisioning := newProvisioning(ctx, client, factory, o.provisioner, Provisioner{disk, why == nil, o.node})
	factory.Start(ctx.Done())
	go provisioning.Run(ctx)
	resizer.Run(ctx)
	return nil
}

// serveHealth answers /healthz: 200 once claims and volumes have been listed, else 503.
func serveHealth(ctx context.Context, address string, synced func() bool) error {
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
		if !synced() {
			http.Error(response, "claims and volumes have not been listed yet", http.StatusServiceUnavailable)
		}
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
