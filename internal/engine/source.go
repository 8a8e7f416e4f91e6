package engine

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// maxMediaBytes bounds a medium before it is decoded.
const maxMediaBytes = 256 << 20

// LoadLocal returns a Load for a program that acts for the person at the
// keyboard: paths, relative to dir, data URLs, and http(s) URLs.
func LoadLocal(dir string) Load {
	client := &http.Client{Timeout: time.Minute}
	local := LocalPaths(dir)
	return func(ctx context.Context, source string) (string, []byte, error) {
		if path, ok := local(source); ok {
			data, err := readFile(path)
			return path, data, err
		}
		if strings.HasPrefix(source, "data:") {
			data, err := decodeDataURL(source)
			return "data URL", data, err
		}
		if strings.HasPrefix(source, "file:") {
			return source, nil, fmt.Errorf("%.100s: not a file URL with a path of this machine", source)
		}
		if !isWebURL(source) {
			return source, nil, fmt.Errorf("%.100s: a URL of this kind is not fetched; want http, https, file, data or a path", source)
		}
		data, err := fetch(ctx, client, source)
		return source, data, err
	}
}

// scheme is the beginning of a URL.
var scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)

func isWebURL(source string) bool {
	return strings.HasPrefix(source, "http://") || strings.HasPrefix(source, "https://")
}

// LocalPaths returns a Local for the same program: every source but data URLs
// and other URLs than those of files is a path, relative to dir.
func LocalPaths(dir string) Local {
	return func(source string) (string, bool) {
		switch {
		case strings.HasPrefix(source, "data:"):
			return "", false
		case strings.HasPrefix(source, "file://"):
			u, err := url.Parse(source)
			if err != nil || u.Path == "" || u.Host != "" && u.Host != "localhost" {
				return "", false
			}
			source = u.Path
		case scheme.MatchString(source):
			return "", false
		}
		if !filepath.IsAbs(source) {
			source = filepath.Join(dir, source)
		}
		return source, true
	}
}

// readFile reads a file, but no named pipe, which may wait for ever to be opened.
func readFile(path string) ([]byte, error) {
	if st, err := os.Stat(path); err == nil && st.Mode()&fs.ModeNamedPipe != 0 {
		return nil, fmt.Errorf("%s: is a named pipe, want a file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readBounded(path, f)
}

func readBounded(name string, r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxMediaBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(data) > maxMediaBytes {
		return nil, fmt.Errorf("%s: more than %d MiB", name, maxMediaBytes>>20)
	}
	return data, nil
}

// decodeDataURL reads data:[type][;base64],payload.
func decodeDataURL(s string) ([]byte, error) {
	head, payload, ok := strings.Cut(s, ",")
	if !ok {
		return nil, errors.New("data URL: no comma after the media type")
	}
	if !strings.HasSuffix(head, ";base64") {
		text, err := url.PathUnescape(payload)
		if err != nil {
			return nil, fmt.Errorf("data URL: %w", err)
		}
		return []byte(text), nil
	}
	if base64.StdEncoding.DecodedLen(len(payload)) > maxMediaBytes {
		return nil, fmt.Errorf("data URL: more than %d MiB", maxMediaBytes>>20)
	}
	payload = strings.TrimRight(payload, "=")
	data, err := base64.RawStdEncoding.DecodeString(payload)
	if err != nil {
		return nil, fmt.Errorf("data URL: %w", err)
	}
	return data, nil
}

func fetch(ctx context.Context, client *http.Client, source string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, source, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "inkling")
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", source, resp.Status)
	}
	return readBounded(source, resp.Body)
}
