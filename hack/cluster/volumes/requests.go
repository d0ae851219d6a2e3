package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// What the provisioner's pods request (../addons/local-path.yaml), as files in the volumes' folder: `name.make` with a number
// of bytes, and `name.drop`. A request whose file is deleted was carried out, or `name.failed` states why not.
const (
	makeSuffix   = ".make"
	dropSuffix   = ".drop"
	failedSuffix = ".failed"
)

// volumeName is how the provisioner names volumes: <volume>_<namespace>_<claim>.
var volumeName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]*$`)

// Requests carries them out, a few at a time.
type Requests struct {
	Disk Disk
	// Bounded is false where volumes are plain folders.
	Bounded bool
	// Every is how often the folder is read.
	Every time.Duration
}

// Run works until the context ends.
func (r Requests) Run(ctx context.Context) {
	ticker := time.NewTicker(r.Every)
	defer ticker.Stop()
	for {
		r.handleAll(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// handleAll carries out the requests that exist now.
func (r Requests) handleAll(ctx context.Context) {
	entries, err := os.ReadDir(r.Disk.Folder)
	if err != nil {
		slog.Error("the volumes' folder cannot be read", "error", err)
		return
	}
	var group sync.WaitGroup
	limit := make(chan struct{}, 4)
	for _, entry := range entries {
		suffix := filepath.Ext(entry.Name())
		name := strings.TrimSuffix(entry.Name(), suffix)
		if suffix != makeSuffix && suffix != dropSuffix || !entry.Type().IsRegular() || !volumeName.MatchString(name) {
			continue
		}
		limit <- struct{}{}
		group.Add(1)
		go func() {
			defer func() { <-limit; group.Done() }()
			r.handle(ctx, name, suffix)
		}()
	}
	group.Wait()
}

func (r Requests) handle(ctx context.Context, name, suffix string) {
	path := filepath.Join(r.Disk.Folder, name)
	start := time.Now()
	err := r.do(ctx, path, name, suffix)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		slog.Error("a request failed", "volume", name, "request", suffix[1:], "error", err)
		err = os.WriteFile(path+failedSuffix, []byte(err.Error()+"\n"), 0o644)
	} else {
		err = os.RemoveAll(path + failedSuffix)
		slog.Info("request carried out", "volume", name, "request", suffix[1:], "milliseconds", time.Since(start).Milliseconds())
	}
	if err := os.Remove(path + suffix); err != nil {
		slog.Error("a request cannot be deleted", "volume", name, "error", err)
	}
}

func (r Requests) do(ctx context.Context, path, name, suffix string) error {
	if suffix == dropSuffix {
		return r.Disk.Drop(ctx, name)
	}
	if !r.Bounded {
		if err := os.MkdirAll(path, 0o777); err != nil {
			return err
		}
		return os.Chmod(path, 0o777)
	}
	text, err := os.ReadFile(path + suffix)
	if err != nil {
		return err
	}
	bytes, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || bytes <= 0 {
		return fmt.Errorf("%q is no size", text)
	}
	return r.Disk.Make(ctx, name, bytes)
}
