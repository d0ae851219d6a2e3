// Command pause holds a pod's namespaces open: it is process 1 of a pod sandbox, reaps what is
// reparented to it, and ends on SIGTERM or SIGINT. It stands in for registry.k8s.io/pause, which the
// embedded cluster cannot pull.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for received := range signals {
		if received != syscall.SIGCHLD {
			return
		}
		for {
			pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			if pid <= 0 || err != nil {
				break
			}
		}
	}
	os.Exit(0)
}
