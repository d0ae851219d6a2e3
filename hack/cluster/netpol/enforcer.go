package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"sync"
	"time"
)

// Timing of the loop.
type Timing struct {
	// Debounce is how long to wait for more after a first change.
	Debounce time.Duration
	// Retry is how long to wait after a failure.
	Retry time.Duration
	// Check is how often to check that the table is still loaded.
	Check time.Duration
}

// DefaultTiming keeps a change well under a second away from the kernel.
var DefaultTiming = Timing{Debounce: 50 * time.Millisecond, Retry: time.Second, Check: 10 * time.Second}

// Kernel is where rules go.
type Kernel interface {
	// Apply replaces the table by the one in the text, all or nothing.
	Apply(ctx context.Context, text string) error
	// Exists reports whether the table is loaded.
	Exists(ctx context.Context) bool
	// CutForbidden ends the connections of the changed addresses that the ruleset forbids.
	CutForbidden(ruleset *Ruleset, changed map[netip.Addr]bool) (int, error)
}

// Enforcer keeps the kernel's rules equal to what the cluster's policies mean.
type Enforcer struct {
	Node     Node
	Snapshot func() (Input, error)
	Kernel   Kernel
	Timing   Timing

	trigger  chan struct{}
	text     string
	current  *Ruleset
	uncut    map[netip.Addr]bool
	problems string

	mutex  sync.Mutex
	status Status
}

// Status is what the health endpoint reports.
type Status struct {
	Healthy   bool      `json:"healthy"`
	Error     string    `json:"error,omitempty"`
	Addresses int       `json:"addresses"`
	Policies  int       `json:"policies"`
	Applied   int       `json:"applied"`
	AppliedAt time.Time `json:"applied_at"`
}

// NewEnforcer makes one; nothing happens before Run.
func NewEnforcer(node Node, kernel Kernel, timing Timing) *Enforcer {
	return &Enforcer{
		Node: node, Kernel: kernel, Timing: timing,
		trigger: make(chan struct{}, 1), uncut: map[netip.Addr]bool{},
		status: Status{Error: "the cluster has not been listed yet"},
	}
}

// Trigger requests a reconcile. It never blocks.
func (e *Enforcer) Trigger() {
	select {
	case e.trigger <- struct{}{}:
	default:
	}
}

// Status returns the outcome of the last attempt.
func (e *Enforcer) Status() Status {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return e.status
}

// CloseIfBare loads rules without any pod, so that nothing from the bridge passes until the cluster has been read.
// Rules that an earlier enforcer left stay.
func (e *Enforcer) CloseIfBare(ctx context.Context) error {
	if e.Kernel.Exists(ctx) {
		return nil
	}
	closed, _ := Compile(Input{}, e.Node)
	return e.Kernel.Apply(ctx, closed.Text())
}

// Run works until the context ends. A failure is logged, shown in Status and retried; the rules stay meanwhile.
func (e *Enforcer) Run(ctx context.Context) {
	check := time.NewTicker(e.Timing.Check)
	defer check.Stop()
	e.Trigger()
	for {
		select {
		case <-ctx.Done():
			return
		case <-check.C:
			if e.text == "" || e.Kernel.Exists(ctx) {
				continue
			}
			slog.Warn("table is missing, loading it again", "table", Table)
			e.text = ""
		case <-e.trigger:
			if !sleep(ctx, e.Timing.Debounce) {
				return
			}
			// What arrived meanwhile is part of the snapshot that follows.
			select {
			case <-e.trigger:
			default:
			}
		}
		err := e.reconcile(ctx)
		if ctx.Err() != nil {
			return
		}
		e.record(err)
		if err != nil {
			slog.Error("rules not up to date", "error", err)
			time.AfterFunc(e.Timing.Retry, e.Trigger)
		}
	}
}

// reconcile reads the cluster, loads the rules if they changed, and cuts connections that they forbid.
func (e *Enforcer) reconcile(ctx context.Context) error {
	input, err := e.Snapshot()
	if err != nil {
		return fmt.Errorf("reading the cluster: %w", err)
	}
	next, problems := Compile(input, e.Node)
	e.report(problems)
	maps.Copy(e.uncut, Changed(e.current, next))
	text := next.Text()
	if text != e.text {
		start := time.Now()
		if err := e.Kernel.Apply(ctx, text); err != nil {
			return err
		}
		e.text = text
		e.mutex.Lock()
		e.status.Applied++
		e.status.AppliedAt = time.Now()
		e.status.Addresses, e.status.Policies = len(next.endpoints), len(input.Policies)
		e.mutex.Unlock()
		slog.Info("rules loaded", "addresses", len(next.endpoints), "policies", len(input.Policies),
			"bytes", len(text), "milliseconds", time.Since(start).Milliseconds())
	}
	e.current = next
	cut, err := e.Kernel.CutForbidden(next, e.uncut)
	if err != nil {
		return err
	}
	if cut > 0 {
		slog.Info("connections cut", "connections", cut)
	}
	e.uncut = map[netip.Addr]bool{}
	return nil
}

// report logs what could not be understood, once.
func (e *Enforcer) report(problems []error) {
	text := fmt.Sprint(problems)
	if len(problems) > 0 && text != e.problems {
		slog.Warn("parts of policies cannot be understood and allow nothing", "problems", text)
	}
	e.problems = text
}

func (e *Enforcer) record(err error) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.status.Healthy, e.status.Error = err == nil, ""
	if err != nil {
		e.status.Error = err.Error()
	}
}

func sleep(ctx context.Context, duration time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(duration):
		return true
	}
}
