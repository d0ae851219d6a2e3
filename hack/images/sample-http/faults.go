package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// faults are what a test may ask of a sample whose environment has SAMPLE_FAULTS=1: to hang, to exit, or to write to its log.
// Without it their paths have no meaning of their own.
type faults struct {
	next http.Handler
	log  io.Writer
	exit func(code int)
	hung atomic.Bool
}

// mostLines of one request.
const mostLines = 10_000_000

// withFaults serves POST /hang, after which no request is answered, POST /exit/NNN, and POST
// /lines/NNN?text=TEXT before next.
func withFaults(next http.Handler, log io.Writer, exit func(code int)) http.Handler {
	if os.Getenv("SAMPLE_FAULTS") != "1" {
		return next
	}
	return &faults{next: next, log: log, exit: exit}
}

func (f *faults) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.hung.Load() {
		<-r.Context().Done()
		return
	}
	lines, isLines := strings.CutPrefix(r.URL.Path, "/lines/")
	code, isExit := strings.CutPrefix(r.URL.Path, "/exit/")
	switch {
	case r.Method == http.MethodPost && r.URL.Path == "/hang":
		f.next.ServeHTTP(w, r)
		f.hung.Store(true)
		// What hangs does not stop when it is asked to, either.
		signal.Ignore(syscall.SIGTERM)
	case r.Method == http.MethodPost && isExit:
		number, err := strconv.ParseUint(code, 10, 7)
		if err != nil {
			http.Error(w, "the code must be 0 to 127", http.StatusBadRequest)
			return
		}
		fmt.Fprintf(f.log, "exits with %d, as it was asked to\n", number)
		f.exit(int(number))
	case r.Method == http.MethodPost && isLines:
		number, err := strconv.ParseUint(lines, 10, 32)
		if err != nil || number > mostLines {
			http.Error(w, "too many lines", http.StatusBadRequest)
			return
		}
		f.write(r.URL.Query().Get("text"), number)
	default:
		f.next.ServeHTTP(w, r)
	}
}

// write puts a text and a number on each of so many lines.
func (f *faults) write(text string, lines uint64) {
	buffer := bufio.NewWriterSize(f.log, 64*1024)
	defer buffer.Flush()
	for line := uint64(1); line <= lines; line++ {
		fmt.Fprintf(buffer, "%s %d\n", text, line)
	}
}
