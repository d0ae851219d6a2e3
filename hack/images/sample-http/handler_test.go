package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

var self = identity{hostname: "pod-1", startedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), version: "v7"}

func request(method, target string) (*httptest.ResponseRecorder, string) {
	var log bytes.Buffer
	answer := httptest.NewRecorder()
	r := httptest.NewRequest(method, target, nil)
	r.Header.Set("X-Seen", "yes")
	newHandler(self, &log).ServeHTTP(answer, r)
	return answer, log.String()
}

func TestRoutes(t *testing.T) {
	t.Setenv("SAMPLE_VALUE", "a $b\nc ")
	t.Setenv("SAMPLE_EMPTY", "")
	cases := []struct {
		name, method, target string
		code                 int
		body                 string
	}{
		{"health", "GET", "/healthz", 200, "ok\n"},
		{"a variable is answered byte for byte", "GET", "/env/SAMPLE_VALUE", 200, "a $b\nc "},
		{"an empty variable is set", "GET", "/env/SAMPLE_EMPTY", 200, ""},
		{"an unset variable is not found", "GET", "/env/SAMPLE_MISSING", 404, "no such variable\n"},
		{"a status is answered", "GET", "/status/418", 418, "418\n"},
		{"a bodyless status has no body", "GET", "/status/204", 204, ""},
		{"an informational status is refused", "GET", "/status/101", 400, "status must be 200 to 599\n"},
		{"a status that is no number is refused", "GET", "/status/x", 400, "status must be 200 to 599\n"},
		{"sleep answers how long", "GET", "/sleep/5", 200, "slept 5 ms\n"},
		{"a negative sleep is refused", "GET", "/sleep/-1", 400, "milliseconds must be a whole number\n"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			answer, log := request(c.method, c.target)
			if answer.Code != c.code || answer.Body.String() != c.body {
				t.Errorf("got %d %q, want %d %q", answer.Code, answer.Body.String(), c.code, c.body)
			}
			if strings.Count(log, "\n") != 1 || !strings.HasPrefix(log, c.method+" "+c.target+" ") {
				t.Errorf("log %q is not one line of this request", log)
			}
		})
	}
}

func TestEveryOtherPathEchoesTheRequest(t *testing.T) {
	for _, method := range []string{"GET", "POST", "DELETE"} {
		answer, log := request(method, "http://app.example/some/path?q=1")
		if answer.Code != 200 {
			t.Fatalf("%s: got %d", method, answer.Code)
		}
		var got map[string]any
		if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		want := map[string]any{"method": method, "path": "/some/path", "hostname": "pod-1", "started_at": "2026-01-02T03:04:05Z", "version": "v7"}
		for key, value := range want {
			if got[key] != value {
				t.Errorf("%s: %s is %v, want %v", method, key, got[key], value)
			}
		}
		headers := got["headers"].(map[string]any)
		if headers["x-seen"] != "yes" || headers["host"] != "app.example" {
			t.Errorf("headers are %v", headers)
		}
		if len(got) != 6 {
			t.Errorf("answer has %d keys, want 6", len(got))
		}
		if !strings.HasPrefix(log, method+" /some/path 200 ") {
			t.Errorf("log is %q", log)
		}
	}
}

func TestAnUncleanPathIsEchoedNotRedirected(t *testing.T) {
	answer, _ := request("GET", "http://app.example//a/../b")
	if answer.Code != 200 || !strings.Contains(answer.Body.String(), `"path":"//a/../b"`) {
		t.Errorf("got %d %s", answer.Code, answer.Body.String())
	}
}

func TestPathsCannotBreakTheLogLine(t *testing.T) {
	_, log := request("GET", "/a%0Ab")
	if strings.Count(log, "\n") != 1 {
		t.Errorf("log %q is not one line", log)
	}
}

func TestStopLetsTheRequestInFlightFinish(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stop, cancel := context.WithCancel(context.Background())
	arrived := make(chan struct{})
	handler := newHandler(self, io.Discard)
	served := make(chan error, 1)
	go func() {
		served <- serve(stop, listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			close(arrived)
			handler.ServeHTTP(w, r)
		}))
	}()
	answered := make(chan string, 1)
	go func() {
		response, err := http.Get("http://" + listener.Addr().String() + "/sleep/300")
		if err != nil {
			answered <- err.Error()
			return
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		answered <- string(body)
	}()
	<-arrived
	cancel()
	if got := <-answered; got != "slept 300 ms\n" {
		t.Errorf("the request in flight got %q", got)
	}
	if err := <-served; err != nil {
		t.Errorf("serve ended with %v", err)
	}
	if _, err := net.Dial("tcp", listener.Addr().String()); err == nil {
		t.Error("still listening after the stop")
	}
}
