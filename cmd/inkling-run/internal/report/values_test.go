package report

import (
	"math"
	"testing"
)

func TestSizes(t *testing.T) {
	for _, tc := range []struct {
		n             int64
		bytes, params string
	}{
		{0, "0 B", "0"},
		{999, "999 B", "999"},
		{1000, "1.0 KB", "1.0K"},
		{999_949, "999.9 KB", "999.9K"},
		{999_950, "1.0 MB", "1.0M"},
		{266e9, "266.0 GB", "266.0B"},
		{1.9e12, "1.9 TB", "1.9T"},
		{math.MaxInt64, "9.2 EB", "9223372.0T"},
	} {
		if got := ByteSize(tc.n); got != tc.bytes {
			t.Errorf("byteSize(%d) = %q, want %q", tc.n, got, tc.bytes)
		}
		if got := Parameters(tc.n); got != tc.params {
			t.Errorf("parameters(%d) = %q, want %q", tc.n, got, tc.params)
		}
	}
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{"blk.0.attn_q.weight": "blk.0.attn_q.weight", "中": "中", "a\x1b[m": `"a\x1b[m"`, "\xff": `"\xff"`} {
		if got := Printable(in); got != want {
			t.Errorf("printable(%q) = %s, want %s", in, got, want)
		}
	}
}
