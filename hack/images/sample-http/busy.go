package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"
)

// busyPeriod is how often a busy sample works and rests.
const busyPeriod = 100 * time.Millisecond

// startBusy uses as much of one processor, until it ends, as SAMPLE_BUSY_PERCENT says: none without it.
func startBusy(ctx context.Context) error {
	value := os.Getenv("SAMPLE_BUSY_PERCENT")
	if value == "" {
		return nil
	}
	percent, err := strconv.ParseUint(value, 10, 7)
	if err != nil || percent > 100 {
		return fmt.Errorf("SAMPLE_BUSY_PERCENT must be 0 to 100")
	}
	go func() {
		work := busyPeriod * time.Duration(percent) / 100
		for ctx.Err() == nil {
			for end := time.Now().Add(work); time.Now().Before(end); {
			}
			time.Sleep(busyPeriod - work)
		}
	}()
	return nil
}
