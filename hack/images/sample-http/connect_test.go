package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// ask gets the answer about a variable with this address.
func ask(t *testing.T, address string) (int, string) {
	t.Helper()
	t.Setenv("DATABASE_URL", address)
	answer := httptest.NewRecorder()
	serveConnect(answer, httptest.NewRequest(http.MethodGet, "/connect/DATABASE_URL", nil), "DATABASE_URL")
	return answer.Code, answer.Body.String()
}

func TestConnectLogsInByTheAddressInAVariable(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "app" || password != "right" || r.URL.Path != "/" {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "https://")
	if code, body := ask(t, "https://app:right@"+host+"/app"); code != http.StatusOK {
		t.Errorf("answered %d %s", code, body)
	}
	if code, body := ask(t, "https://app:wrong@"+host+"/app"); code != http.StatusBadGateway || !strings.Contains(body, "403") {
		t.Errorf("answered %d %s", code, body)
	}
	if code, _ := ask(t, "gopher://example.com/"); code != http.StatusBadGateway {
		t.Errorf("answered %d", code)
	}
}

// The example of RFC 7677.
func TestScramAnswersAsTheStandardSays(t *testing.T) {
	const nonce = "rOprNGfwEbeRWgbNEkqO"
	server := "r=" + nonce + "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
	final, err := scramFinal("n=user,r="+nonce, server, nonce, "pencil")
	if err != nil || !strings.HasSuffix(final, ",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=") {
		t.Errorf("%s %v", final, err)
	}
}

// Against a server of one's own: DATABASE_TEST_URL=postgresql://… go test.
func TestConnectToARealServer(t *testing.T) {
	address := os.Getenv("DATABASE_TEST_URL")
	if address == "" {
		t.Skip("no DATABASE_TEST_URL")
	}
	if code, body := ask(t, address); code != http.StatusOK {
		t.Errorf("answered %d %s", code, body)
	}
}
