// Command sample-http is the HTTP application that a Slipway stack offers as SLIPWAY_IMAGE_HTTP: small enough to start
// at once, and talkative enough for a test to see what reached it. It uses the standard library only and runs from an
// empty image as any user.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// version is set by the linker: -X main.version=v2.
var version = "dev"

// shutdownGrace bounds how long requests in flight may take after SIGTERM; it stays below the 30 s that Kubernetes
// grants a pod by default.
const shutdownGrace = 25 * time.Second

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "sample-http:", err)
		os.Exit(1)
	}
}

func run() error {
	hostname, err := os.Hostname()
	if err != nil {
		return err
	}
	port := os.Getenv("PORT")
	if port == "" {
		port = "8080"
	}
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer cancel()

	listener, err := net.Listen("tcp", ":"+port)
	if err != nil {
		return err
	}
	fmt.Printf("sample-http %s listening on %s\n", version, listener.Addr())
	handler := newHandler(identity{hostname: hostname, startedAt: time.Now(), version: version}, os.Stdout)
	return serve(stop, listener, withFaults(handler, os.Stdout, os.Exit))
}

// serve answers until stop is done, then refuses new connections and lets requests in flight finish.
func serve(stop context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()

	select {
	case err := <-failed:
		return err
	case <-stop.Done():
	}
	grace, cancel := context.WithTimeout(context.Background(), shutdownGrace)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		return err
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
