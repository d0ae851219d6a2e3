package main

import (
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
)

// handler answers with the files of a tree: a folder by its index.html, what is not there by the tree's 404.html. It
// lists no folders, and knows no files whose names begin with a dot but those of /.well-known.
type handler struct{ files fs.FS }

// NewHandler serves the files of a tree.
func NewHandler(files fs.FS) http.Handler { return handler{files} }

func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	name := strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/")
	if hidden(name) {
		h.notFound(w, r)
		return
	}
	if name == "" {
		name = "."
	}
	info, err := fs.Stat(h.files, name)
	if err == nil && info.IsDir() {
		// Links in a page are seen from its address, so a folder's has to end as one.
		if !strings.HasSuffix(r.URL.Path, "/") {
			target := *r.URL
			target.Scheme, target.Host, target.Path = "", "", "/"+name+"/"
			http.Redirect(w, r, target.String(), http.StatusMovedPermanently)
			return
		}
		name = path.Join(name, "index.html")
		info, err = fs.Stat(h.files, name)
	}
	if err != nil || !info.Mode().IsRegular() {
		h.notFound(w, r)
		return
	}
	h.serve(w, r, name, info.ModTime())
}

func (h handler) serve(w http.ResponseWriter, r *http.Request, name string, changed time.Time) {
	file, err := h.files.Open(name)
	if err != nil {
		h.notFound(w, r)
		return
	}
	defer file.Close()
	content, ok := file.(io.ReadSeeker)
	if !ok {
		http.Error(w, "internal server error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(w, r, name, changed, content)
}

func (h handler) notFound(w http.ResponseWriter, r *http.Request) {
	page, err := fs.ReadFile(h.files, "404.html")
	if err != nil {
		http.Error(w, "not found", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", mime.TypeByExtension(".html"))
	w.WriteHeader(http.StatusNotFound)
	if r.Method != http.MethodHead {
		_, _ = w.Write(page)
	}
}

// hidden reports whether a part of the path begins with a dot.
func hidden(name string) bool {
	for _, part := range strings.Split(name, "/") {
		if strings.HasPrefix(part, ".") && part != ".well-known" {
			return true
		}
	}
	return false
}
