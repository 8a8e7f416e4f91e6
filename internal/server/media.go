package server

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// MediaPolicy says where the media of requests may come from, besides the requests
// themselves.
type MediaPolicy struct {
	Fetch    bool     // from any public address by http(s)
	Hosts    []string // and from these hosts, whatever their addresses
	FilesDir string   // from files below this folder; empty: none

	MaxBytes int64         // of one medium; 0: 64 MiB
	Timeout  time.Duration // for fetching it; 0: 30 s
}

// Bounds of a medium that MediaPolicy does not set, and of the way to it.
const (
	defaultMediaBytes   = 64 << 20
	defaultMediaTimeout = 30 * time.Second
	maxRedirects        = 5
)

// mediaSource fetches media for requests.
type mediaSource struct {
	MediaPolicy
	client *http.Client
	root   *os.Root // of FilesDir; nil without
}

func newMediaSource(p MediaPolicy) (*mediaSource, error) {
	if p.MaxBytes == 0 {
		p.MaxBytes = defaultMediaBytes
	}
	if p.Timeout == 0 {
		p.Timeout = defaultMediaTimeout
	}
	m := &mediaSource{MediaPolicy: p}
	m.client = &http.Client{Transport: m.transport(net.DefaultResolver), CheckRedirect: m.redirect, Timeout: p.Timeout}
	if p.FilesDir == "" {
		return m, nil
	}
	root, err := os.OpenRoot(p.FilesDir)
	if err != nil {
		return nil, fmt.Errorf("--allow-files: %w", err)
	}
	m.root = root
	return m, nil
}

func (m *mediaSource) close() {
	m.client.CloseIdleConnections()
	if m.root != nil {
		m.root.Close()
	}
}

// load is the engine's Load: data URLs, http(s) URLs and files, as far as they
// are allowed.
func (m *mediaSource) load(ctx context.Context, source string) (name string, data []byte, err error) {
	scheme, _, _ := strings.Cut(source, ":")
	switch strings.ToLower(scheme) {
	case "data":
		data, err = m.dataURL(source)
		name = "data URL"
	case "http", "https":
		data, err = m.fetch(ctx, source)
		name = source
	default:
		return m.file(source)
	}
	if err != nil {
		return name, nil, &Error{Status: http.StatusBadRequest, Code: "invalid_media", Message: fmt.Sprintf("%.200s: %v", name, err), cause: err}
	}
	return name, data, nil
}

// local is the engine's Local. No clip is read in place: what ffmpeg or a pattern
// of file names would reach is not held below the folder.
func (m *mediaSource) local(string) (string, bool) { return "", false }

var errTooLarge = errors.New("larger than media may be")

// dataURL reads data:[type][;base64],payload.
func (m *mediaSource) dataURL(s string) ([]byte, error) {
	head, payload, ok := strings.Cut(s[len("data:"):], ",")
	if !ok {
		return nil, errors.New("no comma after the media type")
	}
	if !strings.HasSuffix(strings.ToLower(head), ";base64") {
		text, err := url.PathUnescape(payload)
		if err == nil && int64(len(text)) > m.MaxBytes {
			err = errTooLarge
		}
		return []byte(text), err
	}
	data, err := decodeBase64(payload)
	if err == nil && int64(len(data)) > m.MaxBytes {
		err = errTooLarge
	}
	return data, err
}

// decodeBase64 reads base64 as clients write it: of either alphabet, with or
// without padding, and in lines.
func decodeBase64(s string) ([]byte, error) {
	if strings.ContainsAny(s, " \r\n\t") {
		s = strings.NewReplacer(" ", "", "\r", "", "\n", "", "\t", "").Replace(s)
	}
	s = strings.TrimRight(s, "=")
	enc := base64.RawStdEncoding
	if strings.ContainsAny(s, "-_") {
		enc = base64.RawURLEncoding
	}
	data, err := enc.DecodeString(s)
	if err != nil {
		return nil, fmt.Errorf("not base64: %w", err)
	}
	return data, nil
}

// file reads a file below the folder of --allow-files, which symbolic links do not
// leave.
func (m *mediaSource) file(source string) (string, []byte, error) {
	refuse := func(format string, args ...any) (string, []byte, error) {
		return source, nil, &Error{Status: http.StatusBadRequest, Code: "invalid_media", Message: fmt.Sprintf("%.200s: ", source) + fmt.Sprintf(format, args...)}
	}
	if m.root == nil {
		return refuse("files are not read: --allow-files names a folder for them; a data URL or an http(s) URL is")
	}
	path := source
	if rest, ok := strings.CutPrefix(source, "file://"); ok {
		u, err := url.Parse(source)
		if err != nil || u.Host != "" && u.Host != "localhost" {
			return refuse("not the URL of a file of this machine")
		}
		path = rest[len(u.Host):]
		if u.Path != "" {
			path = u.Path
		}
	}
	if filepath.IsAbs(path) {
		dir, err := filepath.Abs(m.FilesDir)
		if err != nil {
			return refuse("%v", err)
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil || !filepath.IsLocal(rel) {
			return refuse("not below the folder of --allow-files")
		}
		path = rel
	}
	f, err := m.root.Open(path)
	if err != nil {
		return refuse("%v", errors.Unwrap(err))
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return refuse("not a file")
	}
	data, err := m.bounded(f)
	if err != nil {
		return refuse("%v", err)
	}
	return source, data, nil
}

func (m *mediaSource) bounded(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, m.MaxBytes+1))
	if err == nil && int64(len(data)) > m.MaxBytes {
		err = fmt.Errorf("%w (%d bytes)", errTooLarge, m.MaxBytes)
	}
	return data, err
}

// fetch gets a medium from the web.
func (m *mediaSource) fetch(ctx context.Context, source string) ([]byte, error) {
	u, err := url.Parse(source)
	if err != nil {
		return nil, errors.New("not a URL")
	}
	if err := m.allowed(u); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "inkling")
	resp, err := m.client.Do(req)
	if err != nil {
		var at *url.Error
		if errors.As(err, &at) {
			err = at.Err // it names the URL, as the caller does
		}
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the host answers %s", resp.Status)
	}
	return m.bounded(resp.Body)
}

// allowed checks a URL before a connection is made. The address is checked when
// it is known, in dial.
func (m *mediaSource) allowed(u *url.URL) error {
	if u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("the scheme %q is not fetched", u.Scheme)
	}
	if !m.Fetch && !m.trusts(u.Hostname()) {
		return fmt.Errorf("media are not fetched from %s: --allow-media-host %s allows it", u.Hostname(), u.Hostname())
	}
	return nil
}

func (m *mediaSource) trusts(host string) bool {
	return slices.ContainsFunc(m.Hosts, func(h string) bool { return strings.EqualFold(h, host) })
}

func (m *mediaSource) redirect(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	return m.allowed(req.URL)
}

// transport connects to public addresses only, but for hosts that are allowed by
// name. It uses no proxy, which would resolve names by itself.
func (m *mediaSource) transport(r *net.Resolver) *http.Transport {
	strict := &net.Dialer{Timeout: m.Timeout, Resolver: r, Control: publicOnly}
	trusting := &net.Dialer{Timeout: m.Timeout, Resolver: r}
	return &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			host, _, err := net.SplitHostPort(addr)
			if err == nil && m.trusts(host) {
				return trusting.DialContext(ctx, network, addr)
			}
			return strict.DialContext(ctx, network, addr)
		},
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: 64 << 10,
		IdleConnTimeout:        time.Minute,
		TLSHandshakeTimeout:    10 * time.Second,
	}
}

// publicOnly refuses a connection by the address that is about to be used, which
// no later answer of the name server can change.
func publicOnly(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if !isPublic(ap.Addr()) {
		return fmt.Errorf("%s is not a public address: --allow-media-host allows a host in spite of that", ap.Addr())
	}
	return nil
}

// notPublic are networks that net/netip has no name for. Source: the special
// purpose address registries of IANA (RFC 6890 and its updates).
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"), // carrier grade NAT
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), // documentation
	netip.MustParsePrefix("192.88.99.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), // benchmarks
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b::/96"), // IPv4 behind a translator
	netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("100::/64"),
	netip.MustParsePrefix("2001::/23"), // Teredo and others
	netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("2002::/16"), // 6to4
	netip.MustParsePrefix("3fff::/20"),
	netip.MustParsePrefix("5f00::/16"),
	netip.MustParsePrefix("fec0::/10"),
	netip.MustParsePrefix("::/96"), // IPv4-compatible
}

func isPublic(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsMulticast() {
		return false
	}
	return !slices.ContainsFunc(notPublic, func(p netip.Prefix) bool { return p.Contains(a) })
}
