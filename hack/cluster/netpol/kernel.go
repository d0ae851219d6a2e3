package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// nft runs nft with the given input. Its messages become the error.
func nft(ctx context.Context, input string, args ...string) error {
	command := exec.CommandContext(ctx, "nft", args...)
	command.Stdin = strings.NewReader(input)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	if err := command.Run(); err != nil {
		message := strings.TrimSpace(stderr.String())
		return fmt.Errorf("nft %s: %w: %s", strings.Join(args, " "), err, message[:min(len(message), 2000)])
	}
	return nil
}

// Apply replaces the table by the one in the text: all of it or, on an error, nothing.
func Apply(ctx context.Context, text string) error { return nft(ctx, text, "-f", "-") }

// Exists reports whether the table is loaded.
func Exists(ctx context.Context) bool {
	return nft(ctx, "", "list", "chain", "inet", Table, "egress_forward") == nil
}

// Flush removes the table; it may be missing already.
func Flush(ctx context.Context) error {
	return Apply(ctx, fmt.Sprintf("table inet %[1]s\ndelete table inet %[1]s\n", Table))
}

// PrepareKernel sends what the bridge forwards through the rules, IPv6 too. Without this, pods on the same bridge
// would reach each other past every policy.
func PrepareKernel(ctx context.Context) error {
	for _, name := range []string{"bridge-nf-call-iptables", "bridge-nf-call-ip6tables"} {
		path := "/proc/sys/net/bridge/" + name
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			if output, err := exec.CommandContext(ctx, "modprobe", "br_netfilter").CombinedOutput(); err != nil {
				return fmt.Errorf("the kernel has no br_netfilter: %s is missing and modprobe failed: %w: %s",
					path, err, bytes.TrimSpace(output))
			}
		}
		if err := os.WriteFile(path, []byte("1"), 0o644); err != nil {
			return fmt.Errorf("bridged packets cannot be filtered: %w", err)
		}
	}
	return nil
}
