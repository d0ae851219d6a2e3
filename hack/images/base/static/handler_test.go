package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHandler(t *testing.T) {
	folder := t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret.txt")
	files := map[string]string{
		"index.html": "home", "docs/index.html": "docs", "a.css": "body{}", "empty/x.txt": "x",
		".env": "no", ".git/config": "no", ".well-known/it": "yes", "404.html": "nothing here",
	}
	for name, text := range files {
		write(t, filepath.Join(folder, name), text)
	}
	write(t, secret, "outside")
	if err := os.Symlink(secret, filepath.Join(folder, "link.txt")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	server := NewHandler(root.FS())
	for _, row := range []struct {
		method, path string
		status       int
		body, kind   string
	}{
		{"GET", "/", 200, "home", "text/html"},
		{"GET", "/docs/", 200, "docs", "text/html"},
		{"GET", "/docs", 301, "", ""},
		{"GET", "/a.css", 200, "body{}", "text/css"},
		{"HEAD", "/a.css", 200, "", "text/css"},
		{"GET", "/.well-known/it", 200, "yes", ""},
		{"GET", "/empty/", 404, "nothing here", "text/html"},
		{"GET", "/none", 404, "nothing here", "text/html"},
		{"GET", "/.env", 404, "nothing here", ""},
		{"GET", "/.git/config", 404, "nothing here", ""},
		{"GET", "/link.txt", 404, "nothing here", ""},
		{"GET", "/../../etc/passwd", 404, "nothing here", ""},
		{"POST", "/", 405, "", ""},
	} {
		t.Run(row.method+" "+row.path, func(t *testing.T) {
			recorder := httptest.NewRecorder()
			request := httptest.NewRequest(row.method, "http://host/", nil)
			request.URL.Path = row.path
			server.ServeHTTP(recorder, request)
			if recorder.Code != row.status {
				t.Fatalf("status %d, want %d", recorder.Code, row.status)
			}
			if row.body != "" && recorder.Body.String() != row.body {
				t.Errorf("body %q, want %q", recorder.Body.String(), row.body)
			}
			if !strings.HasPrefix(recorder.Header().Get("Content-Type"), row.kind) {
				t.Errorf("content type %q, want %q", recorder.Header().Get("Content-Type"), row.kind)
			}
		})
	}
}

func TestUnchangedFilesAreNotSentAgain(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "a.txt"), "text")
	server := NewHandler(os.DirFS(folder))
	first := httptest.NewRecorder()
	server.ServeHTTP(first, httptest.NewRequest(http.MethodGet, "/a.txt", nil))
	again := httptest.NewRequest(http.MethodGet, "/a.txt", nil)
	again.Header.Set("If-Modified-Since", first.Header().Get("Last-Modified"))
	second := httptest.NewRecorder()
	server.ServeHTTP(second, again)
	if second.Code != http.StatusNotModified {
		t.Fatalf("status %d", second.Code)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
