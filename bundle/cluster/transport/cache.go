package transport

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"k8s.io/client-go/third_party/forked/httpcache"
)

// Cached answers discovery from dir where the server says that nothing changed
// (If-None-Match, 304): it is asked every time, so the cache is never stale,
// whatever cluster is behind an address by now. The files are kubectl's own
// (client-go's discovery/cached/disk/round_tripper.go), which both may use.
func Cached(dir string, client *http.Client) *http.Client {
	if !filepath.IsAbs(dir) { // without a home directory there is no place for it
		return client
	}
	transport := httpcache.NewTransport(files(dir))
	transport.Transport = client.Transport
	with := *client
	with.Transport = transport
	return &with
}

// files is a directory of answers, each a file of its SHA-256 and itself. What
// cannot be read, or is damaged, is not there; what cannot be written is not
// kept.
type files string

func (f files) path(key string) string {
	return filepath.Join(string(f), fmt.Sprintf("%x", sha256.Sum256([]byte(key))))
}

func (f files) Get(key string) ([]byte, bool) {
	text, err := os.ReadFile(f.path(key))
	if err != nil || len(text) < sha256.Size {
		return nil, false
	}
	sum := sha256.Sum256(text[sha256.Size:])
	return text[sha256.Size:], bytes.Equal(sum[:], text[:sha256.Size])
}

func (f files) Set(key string, answer []byte) {
	if os.MkdirAll(string(f), 0o750) != nil {
		return
	}
	file, err := os.CreateTemp(string(f), ".brine-*")
	if err != nil {
		return
	}
	defer os.Remove(file.Name()) //nolint:errcheck // it is gone when all went well
	sum := sha256.Sum256(answer)
	_, err = file.Write(append(sum[:], answer...))
	if closeErr := file.Close(); err == nil && closeErr == nil {
		_ = os.Rename(file.Name(), f.path(key)) // others see the whole of it, or nothing
	}
}

func (f files) Delete(key string) { _ = os.Remove(f.path(key)) }
