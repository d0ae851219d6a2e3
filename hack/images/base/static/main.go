// Command static-server serves the files of one folder: the web server of static sites. It uses the standard library only,
// needs no configuration and runs as any user.
//
//	static-server /srv        on $PORT, 8080 without it
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

// shutdownGrace bounds how long requests in flight may take after SIGTERM; it stays below the 30 s that Kubernetes
// grants a pod by default.
const shutdownGrace = 25 * time.Second

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: static-server FOLDER")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "static-server:", err)
		os.Exit(1)
	}
}

func run(folder string) error {
	// A root is never left, whatever a path or a symbolic link says.
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	port := os.Getenv("PORT")
	if port == "" {
		port = "8080"
	}
	listener, err := net.Listen("tcp", ":"+port)
	if err != nil {
		return err
	}
	fmt.Println("serving", folder, "on port", port)
	server := &http.Server{
		Handler:           NewHandler(root.FS()),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.Background(), shutdownGrace)
		defer cancel()
		ended <- server.Shutdown(grace)
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-ended
}
