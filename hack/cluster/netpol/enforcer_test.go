package main

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"
)

// recorder is a kernel that records what was applied.
type recorder struct {
	mutex   sync.Mutex
	loaded  string
	applied int
	cuts    []map[netip.Addr]bool
	fail    error
	failCut error
}

func (r *recorder) Apply(_ context.Context, text string) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.fail != nil {
		return r.fail
	}
	r.loaded, r.applied = text, r.applied+1
	return nil
}

func (r *recorder) Exists(context.Context) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.loaded != ""
}

func (r *recorder) CutForbidden(_ *Ruleset, changed map[netip.Addr]bool) (int, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.failCut != nil {
		return 0, r.failCut
	}
	r.cuts = append(r.cuts, changed)
	return 0, nil
}

func (r *recorder) set(change func()) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	change()
}

// running starts an enforcer over an input that the test may replace, with short times.
func running(t *testing.T, kernel *recorder, input *Input) *Enforcer {
	t.Helper()
	timing := Timing{Debounce: 20 * time.Millisecond, Retry: 20 * time.Millisecond, Check: 20 * time.Millisecond}
	enforcer := NewEnforcer(testNode, kernel, timing)
	enforcer.Snapshot = func() (Input, error) {
		kernel.mutex.Lock()
		defer kernel.mutex.Unlock()
		return *input, nil
	}
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(ended)
		enforcer.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return enforcer
}

func eventually(t *testing.T, what string, met func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if met() {
			return
		}
	}
	t.Fatalf("not within 5 s: %s", what)
}

func (r *recorder) count() int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.applied
}

func TestManyChangesAreOneLoadAndNoneIsNone(t *testing.T) {
	input := parseInput(t, []byte(twoNamespaces))
	kernel := &recorder{}
	enforcer := running(t, kernel, &input)
	eventually(t, "first load", func() bool { return enforcer.Status().Healthy })
	for range 100 {
		enforcer.Trigger()
	}
	time.Sleep(100 * time.Millisecond)
	if kernel.count() != 1 {
		t.Fatalf("unchanged rules were loaded %d times", kernel.count())
	}
	isolated := parseInput(t, []byte(twoNamespaces+"---\n"+policyIn(`{ podSelector: { matchLabels: { app: web } } }`)))
	kernel.set(func() { input = isolated })
	for range 100 {
		enforcer.Trigger()
	}
	eventually(t, "second load", func() bool { return kernel.count() == 2 })
	time.Sleep(100 * time.Millisecond)
	if kernel.count() != 2 {
		t.Errorf("loaded %d times", kernel.count())
	}
	kernel.set(func() {
		for _, cut := range kernel.cuts[1:] {
			if cut[netip.MustParseAddr(podWorker)] || cut[netip.MustParseAddr(podOther)] {
				t.Errorf("connections of unchanged pods were evaluated: %v", kernel.cuts)
			}
		}
	})
}

func TestFailuresShowAndAreRetried(t *testing.T) {
	input := parseInput(t, []byte(twoNamespaces))
	kernel := &recorder{fail: errors.New("no memory")}
	enforcer := running(t, kernel, &input)
	eventually(t, "failure shows", func() bool { return strings.Contains(enforcer.Status().Error, "no memory") })
	kernel.set(func() { kernel.fail, kernel.failCut = nil, errors.New("dump interrupted") })
	eventually(t, "other failure shows", func() bool { return strings.Contains(enforcer.Status().Error, "dump interrupted") })
	kernel.set(func() { kernel.failCut = nil })
	eventually(t, "recovery", func() bool { return enforcer.Status().Healthy })
	kernel.set(func() {
		if len(kernel.cuts[0]) != 3 {
			t.Errorf("addresses whose connections could not be evaluated were forgotten: %v", kernel.cuts)
		}
	})
}

func TestTableThatWasRemovedComesBack(t *testing.T) {
	input := parseInput(t, []byte(twoNamespaces))
	kernel := &recorder{}
	running(t, kernel, &input)
	eventually(t, "first load", func() bool { return kernel.count() == 1 })
	kernel.set(func() { kernel.loaded = "" })
	eventually(t, "it comes back", func() bool { return kernel.Exists(t.Context()) })
}

func TestStartClosesABareMachineAndKeepsEarlierRules(t *testing.T) {
	kernel := &recorder{}
	enforcer := NewEnforcer(testNode, kernel, DefaultTiming)
	if err := enforcer.CloseIfBare(t.Context()); err != nil || !strings.Contains(kernel.loaded, "drop") {
		t.Fatalf("%v, loaded %q", err, kernel.loaded)
	}
	kernel.loaded = "earlier rules"
	if err := enforcer.CloseIfBare(t.Context()); err != nil || kernel.loaded != "earlier rules" {
		t.Errorf("%v, loaded %q", err, kernel.loaded)
	}
	if enforcer.Status().Healthy {
		t.Error("healthy before anything was read")
	}
}
