package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// hub is a server with the interface of the Hugging Face Hub.
type hub struct {
	endpoint string // without a slash at the end
	token    string // empty: none
	client   *http.Client

	connections int   // at a time
	partSize    int64 // bytes that one connection fetches
	retry       retryPolicy
}

// Defaults of a hub. Parts are large enough that their number says little about
// the time that requests take, and small enough to lose when a process is killed.
const (
	hubEndpoint    = "https://huggingface.co"
	hubConnections = 8
	hubPartSize    = 64 << 20
)

// hubFromEnvironment reads HF_ENDPOINT, HF_TOKEN, and the token that
// huggingface-cli login stores.
func hubFromEnvironment() hub {
	h := hub{
		endpoint:    strings.TrimRight(cmp.Or(os.Getenv("HF_ENDPOINT"), hubEndpoint), "/"),
		token:       hubToken(),
		connections: hubConnections,
		partSize:    hubPartSize,
		retry:       defaultRetry,
	}
	h.client = &http.Client{Transport: h.transport(h.connecting())}
	return h
}

// connecting is the transport below: of HTTP/1.1, as HTTP/2 would put all ranges
// into one connection, whose speed the hub's servers limit.
func (h *hub) connecting() http.RoundTripper {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport
	}
	t = t.Clone()
	t.ForceAttemptHTTP2 = false
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	t.MaxIdleConnsPerHost = h.connections
	return t
}

// hubToken is the user's token, in the places where the hub's own tools look.
func hubToken() string {
	for _, name := range []string{"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"} {
		if t := strings.TrimSpace(os.Getenv(name)); t != "" {
			return t
		}
	}
	path := os.Getenv("HF_TOKEN_PATH")
	if path == "" {
		home := os.Getenv("HF_HOME")
		if home == "" {
			cache, err := os.UserCacheDir()
			if err != nil {
				return ""
			}
			home = filepath.Join(cache, "huggingface")
		}
		path = filepath.Join(home, "token")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "" // public models need none
	}
	return strings.TrimSpace(string(data))
}

// transport adds the token to requests to the endpoint itself, and to no others:
// the files lie on other hosts, which must not see it.
func (h *hub) transport(base http.RoundTripper) http.RoundTripper {
	own, err := url.Parse(h.endpoint)
	token := h.token
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.Header.Set("User-Agent", "inkling")
		r.Header.Del("Authorization")
		if err == nil && token != "" && r.URL.Scheme == own.Scheme && r.URL.Host == own.Host {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		return base.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// check refuses an endpoint that the token would go to in the clear.
func (h *hub) check() error {
	u, err := url.Parse(h.endpoint)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return fmt.Errorf("HF_ENDPOINT %q: want an address such as %s", h.endpoint, hubEndpoint)
	}
	if h.token != "" && u.Scheme == "http" && !isLoopback(u.Hostname()) {
		return fmt.Errorf("HF_ENDPOINT %s: the token would be sent unencrypted; use https, or take HF_TOKEN away", h.endpoint)
	}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// hubFile is one entry of a repository's list of files.
type hubFile struct {
	Type string `json:"type"` // file or directory
	OID  string `json:"oid"`  // of git: for a small file the sha1 of its blob
	Size int64  `json:"size"`
	Path string `json:"path"`
	LFS  *struct {
		OID  string `json:"oid"` // sha256, in hexadecimal digits
		Size int64  `json:"size"`
	} `json:"lfs"`
}

// Bounds of the list of a repository.
const (
	maxListPage  = 32 << 20
	maxListPages = 1000
	maxListFiles = 100_000
)

// list returns the files of a repository.
func (h *hub) list(ctx context.Context, n Name) ([]hubFile, error) {
	next := fmt.Sprintf("%s/api/models/%s/%s/tree/main?recursive=true", h.endpoint, n.Namespace, n.Repo)
	var files []hubFile
	for range maxListPages {
		var page []hubFile
		var link string
		err := h.retry.do(ctx, func() (err error) {
			page, link, err = h.listPage(ctx, n, next)
			return err
		})
		if err != nil {
			return nil, err
		}
		if files = append(files, page...); len(files) > maxListFiles {
			return nil, fmt.Errorf("%s: the repository has more than %d files", n, maxListFiles)
		}
		if link == "" {
			return files, nil
		}
		if next, err = h.nextPage(next, link); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s: the list of files has more than %d pages", n, maxListPages)
}

func (h *hub) listPage(ctx context.Context, n Name, address string) (page []hubFile, link string, err error) {
	ctx, cancel := context.WithTimeout(ctx, h.retry.stall)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, "", err
	}
	resp, err := h.client.Do(req)
	if err != nil {
		return nil, "", &transientError{err: err}
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, "", h.statusError(n, "", resp)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxListPage+1))
	if err != nil {
		return nil, "", &transientError{err: err}
	}
	if len(data) > maxListPage {
		return nil, "", fmt.Errorf("%s: a page of the list of files has more than %d bytes", n, maxListPage)
	}
	if err := json.Unmarshal(data, &page); err != nil {
		return nil, "", fmt.Errorf("%s: the list of files from %s: %w", n, h.endpoint, err)
	}
	return page, nextLink(resp.Header.Values("Link")), nil
}

// nextLink finds <address>; rel="next" in Link headers (RFC 8288).
func nextLink(headers []string) string {
	for _, header := range headers {
		for link := range strings.SplitSeq(header, ",") {
			address, rel, ok := strings.Cut(link, ";")
			address = strings.TrimSpace(address)
			if ok && strings.Contains(strings.ReplaceAll(rel, `"`, ""), "rel=next") && strings.HasPrefix(address, "<") && strings.HasSuffix(address, ">") {
				return address[1 : len(address)-1]
			}
		}
	}
	return ""
}

// nextPage checks that a list goes on where it began. A mirror that passes on the
// links of the hub itself is asked for their path.
func (h *hub) nextPage(current, link string) (string, error) {
	base, err := url.Parse(current)
	if err != nil {
		return "", err
	}
	u, err := base.Parse(link)
	if err != nil {
		return "", fmt.Errorf("the list of files goes on at %q: %w", link, err)
	}
	if u.Host != base.Host && u.Scheme+"://"+u.Host != hubEndpoint {
		return "", fmt.Errorf("the list of files goes on at another host, %s", u.Host)
	}
	u.Scheme, u.Host = base.Scheme, base.Host
	return u.String(), nil
}

// fileURL is where a file of a repository is fetched.
func (h *hub) fileURL(n Name, path string) string {
	parts := strings.Split(path, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return fmt.Sprintf("%s/%s/%s/resolve/main/%s", h.endpoint, n.Namespace, n.Repo, strings.Join(parts, "/"))
}

// ErrNoAccess is wrapped by the error for a repository that wants a token, or
// another one.
var ErrNoAccess = errors.New("no access")

// statusError says what a status of the hub means to the user. path is empty for
// the list of files.
func (h *hub) statusError(n Name, path string, resp *http.Response) error {
	what := n.Host + "/" + n.Namespace + "/" + n.Repo
	if path != "" {
		what += ": " + path
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection is used again
	switch code := resp.StatusCode; {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		if h.token == "" {
			return fmt.Errorf("%s: %w (%s): it is gated or private, or there is no such repository; accept its terms at %s/%s/%s and set HF_TOKEN",
				what, ErrNoAccess, resp.Status, h.endpoint, n.Namespace, n.Repo)
		}
		return fmt.Errorf("%s: %w (%s) with the token that is set: accept the terms at %s/%s/%s, or set another HF_TOKEN",
			what, ErrNoAccess, resp.Status, h.endpoint, n.Namespace, n.Repo)
	case code == http.StatusNotFound:
		return fmt.Errorf("%s: not found on %s", what, h.endpoint)
	case code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500:
		return &transientError{err: fmt.Errorf("%s: %s", what, resp.Status), after: retryAfter(resp.Header, time.Now())}
	}
	return fmt.Errorf("%s: %s", what, resp.Status)
}
