package servecmd

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// The address is Ollama's, whose clients look there.
const (
	defaultHost = "127.0.0.1"
	defaultPort = "11434"
)

// listenAddress joins host and port. Each comes from its option, or from the
// environment, whose HOST may be a URL, as Ollama's may.
func listenAddress(host, port, environment string) (string, error) {
	envHost, envPort, err := splitAddress(environment)
	if err != nil {
		return "", fmt.Errorf("INKLING_HOST or OLLAMA_HOST: %w", err)
	}
	h, p, err := splitAddress(host)
	if err != nil {
		return "", fmt.Errorf("--host: %w", err)
	}
	if host != "" && envPort != "" && p == "" {
		envPort = "" // belongs to the host that is not taken
	}
	h, p = cmp.Or(h, envHost, defaultHost), cmp.Or(port, p, envPort, defaultPort)
	if n, err := strconv.ParseUint(p, 10, 16); err != nil {
		return "", fmt.Errorf("port %q: want 0 to 65535", p)
	} else if p = strconv.FormatUint(n, 10); h == "" {
		h = defaultHost
	}
	return net.JoinHostPort(h, p), nil
}

// splitAddress reads HOST, HOST:PORT, :PORT, [V6]:PORT, V6 or a URL.
func splitAddress(s string) (host, port string, err error) {
	if s = strings.TrimSpace(s); s == "" {
		return "", "", nil
	}
	if strings.Contains(s, "://") {
		u, err := url.Parse(s)
		if err != nil {
			return "", "", err
		}
		return u.Hostname(), u.Port(), nil
	}
	s = strings.TrimSuffix(s, "/")
	if _, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return strings.Trim(s, "[]"), "", nil
	}
	if !strings.Contains(s, ":") {
		return s, "", nil
	}
	host, port, err = net.SplitHostPort(s)
	return host, port, err
}
