package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	cri "k8s.io/cri-client/pkg"
)

// stopPods stops every pod of the node in order, through the container runtime, and removes it with its
// network: what `hack/down.sh` does once the kubelet, which would start them again, is gone.
func stopPods(args []string) int {
	if len(args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: kubernetes stop-pods SOCKET GRACE, as in: unix:///run/slipway/containerd.sock 10s")
		return 2
	}
	grace, err := time.ParseDuration(args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	runtime, err := cri.NewRemoteRuntimeService(args[0], grace+time.Minute, nil, nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx := context.Background()
	containers, err := runtime.ListContainers(ctx, nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	sandboxes, err := runtime.ListPodSandbox(ctx, nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var failures failureCount
	var stopping sync.WaitGroup
	for _, container := range containers {
		stopping.Add(1)
		go func() {
			defer stopping.Done()
			failures.add(runtime.StopContainer(ctx, container.Id, int64(grace.Seconds())))
		}()
	}
	stopping.Wait()
	var removing sync.WaitGroup
	for _, sandbox := range sandboxes {
		removing.Add(1)
		go func() {
			defer removing.Done()
			failures.add(runtime.StopPodSandbox(ctx, sandbox.Id))
			failures.add(runtime.RemovePodSandbox(ctx, sandbox.Id))
		}()
	}
	removing.Wait()
	fmt.Printf("stopped %d pods\n", len(sandboxes))
	if failures.count > 0 {
		return 1
	}
	return 0
}

// failureCount prints and counts errors of goroutines.
type failureCount struct {
	mutex sync.Mutex
	count int
}

func (f *failureCount) add(err error) {
	if err == nil {
		return
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.count++
	fmt.Fprintln(os.Stderr, err)
}
