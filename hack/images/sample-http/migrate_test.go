package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestMigrationReportsOnceAndEndsWithItsCode(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.String())
		if strings.HasPrefix(r.URL.Path, "/busy") {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	var log strings.Builder
	migration, err := parseMigration([]string{server.URL + "/migrated", "1", "3"})
	if err != nil {
		t.Fatal(err)
	}
	code, err := migration.run(&log)
	if err != nil || code != 3 {
		t.Fatalf("got %d, %v", code, err)
	}
	if want := "dev migrates\nends with 3, as it was asked to\n"; log.String() != want {
		t.Errorf("logged %q, want %q", log.String(), want)
	}
	if len(asked) != 1 || asked[0] != "/migrated/dev" {
		t.Errorf("asked %q", asked)
	}
	migration.url = server.URL + "/busy"
	if _, err := migration.run(&log); err == nil {
		t.Error("a failed report was no error")
	}
}

func TestMigrationRefusesOtherArguments(t *testing.T) {
	for _, arguments := range [][]string{{}, {"u", "1"}, {"u", "-1", "0"}, {"u", "1", "128"}} {
		if _, err := parseMigration(arguments); err == nil {
			t.Errorf("took %q", arguments)
		}
	}
}
