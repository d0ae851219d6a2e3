package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func faulty(t *testing.T, enabled string) (*bytes.Buffer, *[]int, func(method, target string, patience time.Duration) *httptest.ResponseRecorder) {
	t.Helper()
	t.Setenv("SAMPLE_FAULTS", enabled)
	var log bytes.Buffer
	var codes []int
	handler := withFaults(newHandler(self, &log), &log, func(code int) { codes = append(codes, code) })
	return &log, &codes, func(method, target string, patience time.Duration) *httptest.ResponseRecorder {
		stop, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		answer := httptest.NewRecorder()
		answer.Body = new(bytes.Buffer)
		handler.ServeHTTP(answer, httptest.NewRequest(method, target, nil).WithContext(stop))
		return answer
	}
}

func TestFaultsNeedTheirVariable(t *testing.T) {
	_, codes, request := faulty(t, "")
	request("POST", "/hang", time.Second)
	request("POST", "/exit/3", time.Second)
	if answer := request("GET", "/healthz", time.Second); answer.Body.String() != "ok\n" || len(*codes) != 0 {
		t.Errorf("got %q and exits %v", answer.Body.String(), *codes)
	}
}

func TestNothingIsAnsweredAfterAHang(t *testing.T) {
	_, _, request := faulty(t, "1")
	if answer := request("GET", "/hang", time.Second); answer.Code != http.StatusOK || answer.Body.Len() == 0 {
		t.Errorf("GET /hang is no fault: got %d %q", answer.Code, answer.Body.String())
	}
	if answer := request("POST", "/hang", time.Second); answer.Body.Len() == 0 {
		t.Error("the request to hang has no answer")
	}
	if answer := request("GET", "/healthz", 10*time.Millisecond); answer.Body.Len() != 0 {
		t.Errorf("answered %q after a hang", answer.Body.String())
	}
}

func TestExitHasItsCodeAndALine(t *testing.T) {
	log, codes, request := faulty(t, "1")
	if answer := request("POST", "/exit/999", time.Second); answer.Code != http.StatusBadRequest {
		t.Errorf("got %d", answer.Code)
	}
	request("POST", "/exit/3", time.Second)
	if len(*codes) != 1 || (*codes)[0] != 3 || log.String() != "exits with 3, as it was asked to\n" {
		t.Errorf("exits %v, log %q", *codes, log.String())
	}
}

func TestLinesAreWrittenWithTheirNumbers(t *testing.T) {
	log, _, request := faulty(t, "1")
	if answer := request("POST", "/lines/10000001", time.Second); answer.Code != http.StatusBadRequest {
		t.Errorf("got %d", answer.Code)
	}
	request("POST", "/lines/2?text=ERROR:+no+disk", time.Second)
	if log.String() != "ERROR: no disk 1\nERROR: no disk 2\n" {
		t.Errorf("log %q", log.String())
	}
}
