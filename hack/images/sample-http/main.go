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
	program := run
	if len(os.Args) == 2 && os.Args[1] == "healthy" {
		program = healthy
	}
	if len(os.Args) > 1 && os.Args[1] == "migrate" {
		program = migrate
	}
	if len(os.Args) > 1 && os.Args[1] == "flood" {
		program = func() error { return flood(os.Stdout, os.Args[2:]) }
	}
	if err := program(); err != nil {
		fmt.Fprintln(os.Stderr, "sample-http:", err)
		os.Exit(1)
	}
}

func run() error {
	hostname, err := os.Hostname()
	if err != nil {
		return err
	}
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer cancel()
	if err := startBusy(stop); err != nil {
		return err
	}

	listener, err := net.Listen("tcp", ":"+port())
	if err != nil {
		return err
	}
	fmt.Printf("sample-http %s listening on %s\n", version, listener.Addr())
	handler := newHandler(identity{hostname: hostname, startedAt: time.Now(), version: version}, os.Stdout)
	return serve(stop, listener, withFaults(handler, os.Stdout, os.Exit))
}

func port() string {
	if port := os.Getenv("PORT"); port != "" {
		return port
	}
	return "8080"
}

// migrate runs a migration, and ends the process with its code.
func migrate() error {
	migration, err := parseMigration(os.Args[2:])
	if err != nil {
		return err
	}
	code, err := migration.run(os.Stdout)
	if err == nil {
		os.Exit(code)
	}
	return err
}

// healthy asks the process that serves in the same container: the command by which a worker shows that it is ready.
func healthy() error {
	client := &http.Client{Timeout: 2 * time.Second}
	answer, err := client.Get("http://127.0.0.1:" + port() + "/healthz")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("answered %s", answer.Status)
	}
	return nil
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
		fmt.Println("sample-http stops")
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
