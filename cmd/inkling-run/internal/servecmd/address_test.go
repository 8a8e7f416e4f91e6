package servecmd

import (
	"testing"
)

func TestListenAddress(t *testing.T) {
	for _, tt := range []struct{ host, port, env, want string }{
		{"", "", "", "127.0.0.1:11434"},
		{"0.0.0.0", "", "", "0.0.0.0:11434"},
		{"0.0.0.0:8080", "", "", "0.0.0.0:8080"},
		{"0.0.0.0:8080", "9", "", "0.0.0.0:9"},
		{"", "8080", "", "127.0.0.1:8080"},
		{"::1", "", "", "[::1]:11434"},
		{"[::1]:80", "", "", "[::1]:80"},
		{":80", "", "", "127.0.0.1:80"},
		{"", "", "0.0.0.0", "0.0.0.0:11434"},
		{"", "", "0.0.0.0:1", "0.0.0.0:1"},
		{"", "", ":1", "127.0.0.1:1"},
		{"", "", "http://0.0.0.0:1/", "0.0.0.0:1"},
		{"", "2", "0.0.0.0:1", "0.0.0.0:2"},
		{"127.0.0.1", "", "0.0.0.0:1", "127.0.0.1:11434"},
		{"", "0", "", "127.0.0.1:0"},
	} {
		if got, err := listenAddress(tt.host, tt.port, tt.env); err != nil || got != tt.want {
			t.Errorf("host %q, port %q, environment %q: %q, error %v, want %q", tt.host, tt.port, tt.env, got, err, tt.want)
		}
	}
	for _, bad := range [][3]string{{"", "70000", ""}, {"", "http", ""}, {"a:b:c", "", ""}, {"", "", "1.2.3.4:x"}, {"", "-1", ""}} {
		if got, err := listenAddress(bad[0], bad[1], bad[2]); err == nil {
			t.Errorf("%q: %q", bad, got)
		}
	}
}
