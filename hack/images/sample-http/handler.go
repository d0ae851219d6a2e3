package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// identity distinguishes one running process from another.
type identity struct {
	hostname  string
	startedAt time.Time
	version   string
}

// echo is the answer to every path that has no meaning of its own.
type echo struct {
	Method    string            `json:"method"`
	Path      string            `json:"path"`
	Headers   map[string]string `json:"headers"`
	Hostname  string            `json:"hostname"`
	StartedAt string            `json:"started_at"`
	Version   string            `json:"version"`
}

// newHandler serves the sample's routes and writes one line per answered request to log. It is no http.ServeMux, which
// would answer a redirect to paths such as //a instead of echoing them.
func newHandler(self identity, log io.Writer) http.Handler {
	return logged(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		route, argument, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		switch {
		case r.Method != http.MethodGet:
			self.serveEcho(w, r)
		case r.URL.Path == "/healthz":
			fmt.Fprintln(w, "ok")
		case route == "env" && argument != "":
			serveEnv(w, argument)
		case route == "connect" && argument != "":
			serveConnect(w, r, argument)
		case route == "status" && argument != "":
			serveStatus(w, argument)
		case route == "sleep" && argument != "":
			serveSleep(w, r, argument)
		default:
			self.serveEcho(w, r)
		}
	}), log)
}

// serveEnv answers the variable's value, byte for byte; a variable set to nothing is 200 with an empty body.
func serveEnv(w http.ResponseWriter, name string) {
	value, set := os.LookupEnv(name)
	if !set {
		http.Error(w, "no such variable", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	io.WriteString(w, value)
}

// serveStatus answers the code in the path; 1xx codes are no final answers and are refused with 400.
func serveStatus(w http.ResponseWriter, argument string) {
	code, err := strconv.Atoi(argument)
	if err != nil || code < 200 || code > 599 {
		http.Error(w, "status must be 200 to 599", http.StatusBadRequest)
		return
	}
	w.WriteHeader(code)
	if code != http.StatusNoContent && code != http.StatusNotModified {
		fmt.Fprintln(w, code)
	}
}

// serveSleep waits as long as asked, or until the client has gone.
func serveSleep(w http.ResponseWriter, r *http.Request, argument string) {
	wait, err := strconv.ParseUint(argument, 10, 31)
	if err != nil {
		http.Error(w, "milliseconds must be a whole number", http.StatusBadRequest)
		return
	}
	select {
	case <-time.After(time.Duration(wait) * time.Millisecond):
		fmt.Fprintf(w, "slept %d ms\n", wait)
	case <-r.Context().Done():
	}
}

func (self identity) serveEcho(w http.ResponseWriter, r *http.Request) {
	headers := map[string]string{"host": r.Host}
	for name, values := range r.Header {
		headers[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(echo{
		Method:    r.Method,
		Path:      r.URL.Path,
		Headers:   headers,
		Hostname:  self.hostname,
		StartedAt: self.startedAt.UTC().Format(time.RFC3339Nano),
		Version:   self.version,
	})
}

// statusRecorder remembers the code of an answer for its log line.
type statusRecorder struct {
	http.ResponseWriter
	code int
}

func (s *statusRecorder) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

func (s *statusRecorder) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func logged(next http.Handler, log io.Writer) http.Handler {
	var one sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		recorder := &statusRecorder{ResponseWriter: w, code: http.StatusOK}
		next.ServeHTTP(recorder, r)
		one.Lock()
		defer one.Unlock()
		fmt.Fprintf(log, "%s %s %d %s\n", r.Method, r.URL.EscapedPath(), recorder.code, time.Since(start).Round(time.Microsecond))
	})
}
