package main

import (
	"context"
	"syscall"
	"testing"
	"time"
)

func TestBusyRefusesOtherThanPercentages(t *testing.T) {
	for _, value := range []string{"101", "-1", "half"} {
		t.Setenv("SAMPLE_BUSY_PERCENT", value)
		if startBusy(t.Context()) == nil {
			t.Errorf("%q was taken", value)
		}
	}
}

func TestBusyUsesTheProcessorUntilItEnds(t *testing.T) {
	t.Setenv("SAMPLE_BUSY_PERCENT", "20")
	ctx, stop := context.WithCancel(t.Context())
	if err := startBusy(ctx); err != nil {
		t.Fatal(err)
	}
	before := processorTime(t)
	for processorTime(t)-before < 50*time.Millisecond {
		time.Sleep(10 * time.Millisecond)
	}
	stop()
}

// processorTime is what this process has used.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
