package server

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestPublicAddresses(t *testing.T) {
	for addr, want := range map[string]bool{
		"93.184.215.14": true, "8.8.8.8": true, "2606:4700::1111": true,
		"127.0.0.1": false, "127.8.8.8": false, "0.0.0.0": false, "10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false,
		"169.254.169.254": false, "100.64.0.1": false, "100.127.255.255": false, "100.128.0.1": true, "224.0.0.1": false, "255.255.255.255": false,
		"192.0.2.1": false, "198.18.0.1": false, "198.51.100.1": false, "203.0.113.1": false, "240.0.0.1": false, "192.0.0.8": false,
		"::1": false, "::": false, "fe80::1": false, "fe80::1%eth0": false, "fc00::1": false, "fd12::1": false, "ff02::1": false,
		"::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "::ffff:8.8.8.8": true, "::127.0.0.1": false,
		"64:ff9b::7f00:1": false, "2002:7f00:1::": false, "2001:0:7f00:1::": false, "2001:db8::1": false, "fec0::1": false,
	} {
		if got := isPublic(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: public %v, want %v", addr, got, want)
		}
	}
}

// pictureServer answers /ok with bytes and redirects /to?u= wherever it is told.
func pictureServer(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "picture") })
	mux.HandleFunc("/to", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("u"), http.StatusFound)
	})
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop", http.StatusFound) })
	mux.HandleFunc("/big", func(w http.ResponseWriter, _ *http.Request) {
		for range 100 {
			fmt.Fprint(w, strings.Repeat("x", 1000))
		}
	})
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
		case <-time.After(10 * time.Second):
		}
	})
	mux.HandleFunc("/none", http.NotFound)
	h := httptest.NewServer(mux)
	t.Cleanup(h.Close)
	return h
}

// fakeDNS answers every question for an IPv4 address with this one.
func fakeDNS(addr string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go answerDNS(server, netip.MustParseAddr(addr).As4())
		return client, nil
	}}
}

// answerDNS serves one connection, over which messages go with their length
// before them, as the resolver has it for what is no packet connection. Source:
// RFC 1035, section 4.
func answerDNS(conn net.Conn, addr [4]byte) {
	defer conn.Close()
	for {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		msg := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, msg); err != nil {
			return
		}
		end := 12 // of the header; then the one question: labels, type, class
		for msg[end] != 0 {
			end += 1 + int(msg[end])
		}
		typ := binary.BigEndian.Uint16(msg[end+1:])
		msg = msg[:end+5]
		copy(msg[2:], []byte{0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}) // an answer, recursion available, one question
		if typ == 1 {
			msg[7] = 1 // answer: the name of the question, A, IN, TTL, address
			msg = append(append(msg, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4), addr[:]...)
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(msg))), msg...)); err != nil {
			return
		}
	}
}

func newTestMedia(t *testing.T, p MediaPolicy) *mediaSource {
	t.Helper()
	m, err := newMediaSource(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.close)
	return m
}

// TestFetch: who may be asked for media, on the first request and on redirects.
func TestFetch(t *testing.T) {
	h := pictureServer(t)
	to := func(target string) string { return h.URL + "/to?u=" + url.QueryEscape(target) }
	trusted := MediaPolicy{Hosts: []string{"127.0.0.1"}, MaxBytes: 1000, Timeout: 500 * time.Millisecond}
	anybody := MediaPolicy{Fetch: true}
	both := MediaPolicy{Fetch: true, Hosts: []string{"127.0.0.1"}}
	for _, tt := range []struct {
		name   string
		policy MediaPolicy
		source string
		want   string // in the error; empty: it is fetched
	}{
		{"allowed host", trusted, h.URL + "/ok", ""},
		{"allowed host redirects to itself", trusted, to(h.URL + "/ok"), ""},
		{"nobody is allowed", MediaPolicy{}, h.URL + "/ok", "--allow-media-host 127.0.0.1 allows it"},
		{"loopback address", anybody, h.URL + "/ok", "127.0.0.1 is not a public address"},
		{"loopback name", anybody, strings.Replace(h.URL, "127.0.0.1", "localhost", 1) + "/ok", "is not a public address"},
		{"decimal address", anybody, "http://2130706433/ok", ""},
		{"mapped address", anybody, "http://[::ffff:127.0.0.1]/ok", "is not a public address"},
		{"cloud metadata", anybody, "http://169.254.169.254/latest", "169.254.169.254 is not a public address"},
		{"redirect to a private address", both, to("http://10.0.0.1/ok"), "10.0.0.1 is not a public address"},
		{"redirect to the metadata", both, to("http://169.254.169.254/"), "169.254.169.254 is not a public address"},
		{"redirect to a host that is not allowed", trusted, to("http://example.org/ok"), "--allow-media-host example.org allows it"},
		{"redirect to a file", both, to("file:///etc/passwd"), `the scheme "file" is not fetched`},
		{"redirects without end", trusted, h.URL + "/loop", "more than 5 redirects"},
		{"too large", trusted, h.URL + "/big", "larger than media may be"},
		{"too slow", trusted, h.URL + "/slow", "deadline"},
		{"not there", trusted, h.URL + "/none", "404"},
		{"another scheme", both, "ftp://127.0.0.1/ok", "files are not read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newTestMedia(t, tt.policy)
			_, data, err := m.load(context.Background(), tt.source)
			switch {
			case tt.name == "decimal address":
				if err == nil { // however it is read, it leads nowhere
					t.Errorf("fetched %q", data)
				}
			case tt.want == "" && (err != nil || string(data) != "picture"):
				t.Errorf("%q, error %v", data, err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("error %v, want %s", err, tt.want)
			}
			if err != nil && asError(err).Status != http.StatusBadRequest {
				t.Errorf("status %d", asError(err).Status)
			}
		})
	}
}

// TestRebinding: a name that leads to this machine or its network is refused when
// the connection is made, with the address that is connected to.
func TestRebinding(t *testing.T) {
	h := pictureServer(t)
	_, port, err := net.SplitHostPort(h.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range []string{"127.0.0.1", "10.0.0.7"} {
		m := newTestMedia(t, MediaPolicy{Fetch: true})
		m.client.Transport = m.transport(fakeDNS(addr))
		_, _, err = m.load(context.Background(), "http://pictures.test:"+port+"/ok")
		if err == nil || !strings.Contains(err.Error(), addr+" is not a public address") {
			t.Errorf("%s: error %v", addr, err)
		}
	}
	m := newTestMedia(t, MediaPolicy{Hosts: []string{"pictures.test"}})
	m.client.Transport = m.transport(fakeDNS("127.0.0.1"))
	if _, data, err := m.load(context.Background(), "http://pictures.test:"+port+"/ok"); err != nil || string(data) != "picture" {
		t.Errorf("a host that is allowed by name: %q, error %v", data, err)
	}
}

func TestDataURLs(t *testing.T) {
	m := newTestMedia(t, MediaPolicy{MaxBytes: 8})
	std := base64.StdEncoding.EncodeToString([]byte{0xff, 0xfe, 0xfd, 1})
	for _, tt := range []struct{ name, source, want, err string }{
		{"base64", "data:image/png;base64," + std, "\xff\xfe\xfd\x01", ""},
		{"no padding", "data:;base64," + strings.TrimRight(std, "="), "\xff\xfe\xfd\x01", ""},
		{"the other alphabet", "data:;base64," + base64.URLEncoding.EncodeToString([]byte{0xff, 0xfe, 0xfd, 1}), "\xff\xfe\xfd\x01", ""},
		{"in lines", "data:;base64," + std[:4] + "\r\n " + std[4:], "\xff\xfe\xfd\x01", ""},
		{"capitals", "DATA:;BASE64," + std, "\xff\xfe\xfd\x01", ""},
		{"text", "data:text/plain,a%20b", "a b", ""},
		{"no comma", "data:image/png", "", "no comma"},
		{"no base64", "data:;base64,?", "", "not base64"},
		{"too large", "data:;base64," + strings.Repeat("A", 16), "", "larger"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, data, err := m.load(context.Background(), tt.source)
			if tt.err == "" && (err != nil || string(data) != tt.want) {
				t.Errorf("%q, error %v", data, err)
			}
			if tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("error %v, want %s", err, tt.err)
			}
		})
	}
}

// TestFiles: files below the folder are read, and nothing else, by whatever path.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	inside, outside := filepath.Join(dir, "in"), filepath.Join(dir, "secret")
	for path, text := range map[string]string{filepath.Join(inside, "sub", "a.png"): "picture", outside: "secret"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range [][2]string{{"../secret", "link"}, {outside, "absolute"}, {"..", "up"}, {"sub/a.png", "good"}} {
		if err := os.Symlink(l[0], filepath.Join(inside, l[1])); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		source string
		ok     bool
	}{
		{"sub/a.png", true},
		{"file://" + inside + "/sub/a.png", true},
		{"file://localhost" + inside + "/sub/a.png", true},
		{inside + "/sub/a.png", true},
		{"good", true},
		{"./sub/../sub/a.png", true},
		{"../secret", false},
		{outside, false},
		{"file://" + outside, false},
		{"link", false},
		{"absolute", false},
		{"up/secret", false},
		{"sub", false},
		{"none", false},
		{"", false},
		{"file://host/sub/a.png", false},
		{inside + "/../secret", false},
		{"sub/../../secret", false},
	} {
		t.Run(tt.source, func(t *testing.T) {
			_, data, err := newTestMedia(t, MediaPolicy{FilesDir: inside}).load(context.Background(), tt.source)
			if tt.ok && (err != nil || string(data) != "picture") {
				t.Errorf("%q, error %v", data, err)
			}
			if !tt.ok && (err == nil || len(data) > 0) {
				t.Errorf("%q, error %v", data, err)
			}
			if _, _, err := newTestMedia(t, MediaPolicy{}).load(context.Background(), tt.source); err == nil || !strings.Contains(err.Error(), "--allow-files") {
				t.Errorf("without the folder: error %v", err)
			}
		})
	}
}
