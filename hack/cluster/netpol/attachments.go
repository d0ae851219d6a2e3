package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
)

// cniResult is the part of a file that libcni keeps of each attachment until it is detached: the pod and
// its addresses.
type cniResult struct {
	CNIArgs [][2]string `json:"cniArgs"`
	Result  struct {
		IPs []struct {
			Address netip.Prefix `json:"address"`
		} `json:"ips"`
	} `json:"result"`
}

// parseCNIResult returns the pod and the addresses in such a file; ok is false for those of no pod (loopback).
func parseCNIResult(content []byte) (pod PodRef, addresses []netip.Addr, ok bool) {
	var result cniResult
	if json.Unmarshal(content, &result) != nil {
		return PodRef{}, nil, false
	}
	for _, arg := range result.CNIArgs {
		switch arg[0] {
		case "K8S_POD_NAMESPACE":
			pod.Namespace = arg[1]
		case "K8S_POD_NAME":
			pod.Name = arg[1]
		case "K8S_POD_UID":
			pod.UID = arg[1]
		}
	}
	for _, ip := range result.Result.IPs {
		addresses = append(addresses, ip.Address.Addr())
	}
	return pod, addresses, pod.Name != "" && len(addresses) > 0
}

// AttachedAddresses reads which pod was given which address from libcni's folder. A pod's status has it a second
// or more after its containers have started; the file exists before. Files that cannot be read are left out.
func AttachedAddresses(dir string) map[netip.Addr]PodRef {
	attached := map[netip.Addr]PodRef{}
	if dir == "" {
		return attached
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return attached
	}
	// The newest attachment has an address that several files name: the others' were not cleaned up.
	newest := map[netip.Addr]int64{}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			continue
		}
		pod, addresses, ok := parseCNIResult(content)
		for _, address := range addresses {
			if modified := info.ModTime().UnixNano(); ok && modified >= newest[address] {
				newest[address], attached[address] = modified, pod
			}
		}
	}
	return attached
}

// WatchAttachments calls changed whenever something in the folder is written or removed, until the context ends.
func WatchAttachments(ctx context.Context, dir string, changed func()) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	if err := watcher.Add(dir); err != nil {
		watcher.Close()
		return err
	}
	go func() {
		defer watcher.Close()
		for {
			select {
			case <-ctx.Done():
				return
			case <-watcher.Events:
				changed()
			case err := <-watcher.Errors:
				slog.Error("watching attachments", "error", err)
				changed()
			}
		}
	}()
	return nil
}
